#include "studies/slurm/spool.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>

#include "traces/output_file.h"

namespace tandem::studies {
namespace {

namespace fs = std::filesystem;

/// Names in a folder, sorted, without the hidden ones of files that are not whole yet. None where the folder is gone.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code gone;
  for (fs::directory_iterator entry(folder, gone), end; !gone && entry != end; entry.increment(gone))
    if (std::string name = entry->path().filename().string(); !name.starts_with('.')) names.push_back(std::move(name));
  std::ranges::sort(names);
  return names;
}

/// Returns the bytes of a file; nothing where it is gone.
std::optional<std::string> text_in(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return {};
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// Returns whether the file is now at `to`. A network file system may say that there is no such file though it has just renamed
/// it, where its first answer was lost.
bool renamed(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  return !error || fs::exists(to, error);
}

void remove_file(const fs::path& path) {
  std::error_code gone;
  fs::remove(path, gone);
}

}  // namespace

Spool::Spool(const std::string& folder)
    : folder_(fs::absolute(folder).lexically_normal()),
      todo_(folder_ / "todo"),
      taken_(folder_ / "taken"),
      done_(folder_ / "done"),
      kept_(folder_ / "kept") {}

fs::path Spool::log_of(const std::string& task) const { return folder_ / "logs" / (task + ".log"); }

void Spool::write(const fs::path& path, const std::string& text) const {
  OutputFile file(path.string());
  file.write(text);
  file.commit();
}

void Spool::open() {
  for (const fs::path& path : {todo_, taken_, done_, kept_, folder_ / "logs"}) fs::create_directories(path);
  for (const std::string& name : names_in(todo_)) remove_file(todo_ / name);
}

void Spool::put(const std::string& hash, const std::string& scenario) { write(todo_ / hash, scenario); }

std::vector<TakenStep> Spool::taken() const {
  std::vector<TakenStep> steps;
  for (const std::string& name : names_in(taken_)) {
    const std::size_t dot = name.find('.');
    if (dot != std::string::npos) steps.push_back({name.substr(0, dot), name.substr(dot + 1)});
  }
  return steps;
}

std::vector<std::string> Spool::done() const { return names_in(done_); }
bool Spool::is_done(const std::string& hash) const { return fs::exists(done_ / hash); }
bool Spool::is_kept(const std::string& hash) const { return fs::exists(kept_ / hash); }

std::string Spool::keep(const std::string& hash) {
  renamed(done_ / hash, kept_ / hash);
  return text_in(kept_ / hash).value_or("");
}

void Spool::forget(const std::string& hash) { remove_file(kept_ / hash); }

void Spool::drop(const TakenStep& step) { remove_file(file_of(step)); }

void Spool::beat() {
  if (beats_ == 0) beats_ = std::random_device()();  // tells it apart from an earlier coordinator's
  write(folder_ / "beat", std::to_string(++beats_));
}

std::string Spool::last_beat() const { return text_in(folder_ / "beat").value_or(""); }

void Spool::set_arrays(const std::vector<std::string>& jobs) {
  std::string text;
  for (const std::string& job : jobs) text += job + "\n";
  write(folder_ / "arrays", text);
}

std::vector<std::string> Spool::arrays() const {
  std::ifstream file(folder_ / "arrays");
  std::vector<std::string> jobs;
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) jobs.push_back(line);
  return jobs;
}

void Spool::close() {
  std::error_code ignored;
  fs::remove_all(todo_, ignored);
}

void Spool::remove() {
  close();
  std::error_code ignored;  // what a task has open may stay behind on a network file system
  fs::remove_all(folder_, ignored);
}

bool Spool::is_there() const {
  std::error_code gone;
  return fs::exists(todo_, gone);
}

fs::path Spool::file_of(const TakenStep& step) const { return taken_ / (step.hash + "." + step.task); }

std::optional<Spool::Step> Spool::take(const std::string& task) {
  for (const bool is_fresh : {false, true}) {
    if (is_fresh) {
      listed_ = names_in(todo_);
      if (listed_.empty()) return {};
      const std::size_t first = std::hash<std::string>()(task) % listed_.size();
      std::ranges::rotate(listed_, listed_.begin() + static_cast<std::ptrdiff_t>(first));
    }
    while (!listed_.empty()) {
      TakenStep step{listed_.back(), task};
      listed_.pop_back();
      if (!renamed(todo_ / step.hash, file_of(step))) continue;
      if (std::optional<std::string> scenario = text_in(file_of(step))) return Step{std::move(step.hash), std::move(*scenario)};
    }
  }
  return {};
}

void Spool::finish(const TakenStep& step, const std::string& outcome) {
  if (is_there()) write(done_ / step.hash, outcome);
  remove_file(file_of(step));
}

void Spool::give_back(const TakenStep& step) { renamed(file_of(step), todo_ / step.hash); }

}  // namespace tandem::studies
