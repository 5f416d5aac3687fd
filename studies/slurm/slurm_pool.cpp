#include "studies/slurm/slurm_pool.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "studies/runner/scenario_hash.h"
#include "studies/slurm/slurm_programs.h"
#include "traces/output_file.h"

namespace tandem::studies {
namespace {

using std::chrono::seconds;

/// Slurm's controller is shared by many: it is asked often only while an array is young.
constexpr std::chrono::milliseconds first_look{500};
constexpr seconds longest_between_looks{30};
constexpr seconds between_beats{5};
constexpr Seconds between_gatherings = 0.5;

std::string in_single_quotes(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

/// In the names of files Slurm replaces what follows a percent sign.
std::string without_patterns(const std::string& path) {
  std::string text;
  for (const char c : path) text += c == '%' ? std::string("%%") : std::string(1, c);
  return text;
}

std::string last_line_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) last = line;
  return last;
}

}  // namespace

SlurmPool::Lock::Lock(const std::string& file) : descriptor(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  // Where a file system has no locks, nothing keeps two of them apart.
  if (descriptor < 0 || ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(descriptor);
  throw std::runtime_error("another tandem waits for the tasks that work in '" +
                           std::filesystem::path(file).parent_path().string() + "'");
}

SlurmPool::Lock::~Lock() {
  if (descriptor >= 0) ::close(descriptor);
}

SlurmPool::SlurmPool(SlurmSettings settings)
    : settings_(std::move(settings)),
      spool_(settings_.folder),
      lock_((std::filesystem::create_directories(spool_.folder()), (spool_.folder() / "lock").string())),
      arrays_(spool_.arrays()) {
  spool_.open();
  for (const TakenStep& step : spool_.taken()) taken_before_.insert(step.hash);
}

SlurmPool::~SlurmPool() {
  try {
    const bool is_over = waiting_.empty();
    if (arrays_.empty() || (is_over && !any_failed_)) spool_.remove();
    if (is_over && any_failed_) spool_.close();
    for (const std::string& job : arrays_) cancel_slurm_job(job, is_over);
  } catch (const std::exception& error) {
    if (settings_.told) settings_.told(error.what());
  }
}

void SlurmPool::expect(std::size_t steps) { expected_ = steps; }

void SlurmPool::start(std::size_t index, const StepJob& job, const ChildSignals& /*signals*/) {
  if (job.site.known()) throw std::logic_error("a task of Slurm is told a scenario's text and nothing else");
  const std::string hash = hash_of_scenario(job.text);
  std::vector<std::size_t>& indices = waiting_[hash];
  indices.push_back(index);
  if (indices.size() > 1) return;
  if (spool_.is_kept(hash)) {
    at_hand_.emplace_back(hash, from_outcome_file(spool_.keep(hash), hash));
    return;
  }
  if (!taken_before_.contains(hash) && !spool_.is_done(hash)) spool_.put(hash, job.text);
}

std::vector<EndedStep> SlurmPool::wait(const ChildSignals& signals) {
  const Clock::time_point now = Clock::now();
  if (now >= next_beat_) {
    spool_.beat();
    next_beat_ = now + between_beats;
  }
  std::vector<EndedStep> ended = gathered();
  if (!ended.empty()) return ended;
  if (now >= next_look_) {
    look_after_tasks();
    between_looks_ = std::clamp<Clock::duration>(2 * between_looks_, first_look, longest_between_looks);
    next_look_ = now + between_looks_;
  }
  signals.wait_for_child(between_gatherings);
  return gathered();
}

/// What has come since the last time.
std::vector<EndedStep> SlurmPool::gathered() {
  for (const std::string& hash : spool_.done()) {
    const std::string text = spool_.keep(hash);
    has_brought_ = true;
    if (waiting_.contains(hash)) at_hand_.emplace_back(hash, from_outcome_file(text, hash));
  }
  std::vector<EndedStep> ended;
  for (auto& [hash, step] : std::exchange(at_hand_, {})) {
    const auto waiting = waiting_.extract(hash);
    if (waiting.empty()) continue;  // two tasks have simulated it
    if (step.outcome.failure() != nullptr) {
      any_failed_ = true;
      spool_.forget(hash);
    }
    for (const std::size_t index : waiting.mapped()) ended.push_back({index, step.outcome, step.json});
  }
  running_ = waiting_.empty() ? 0 : spool_.taken().size();
  return ended;
}

/// Gives what dead tasks have taken to others, and sees to it that there are any.
void SlurmPool::look_after_tasks() {
  const auto states = slurm_states(arrays_);
  if (!states) return;  // the controller is restarted or too busy to answer
  const auto has_ended = [&](const std::string& task) {
    const auto state = states->find(task);
    return state == states->end() || has_ended_in_slurm(state->second);
  };
  std::size_t lost = 0;
  for (const TakenStep& step : spool_.taken()) {
    if (!has_ended(step.task)) continue;
    const auto state = states->find(step.task);
    lose(step, state == states->end() ? "it is gone" : state->second);
    ++lost;
  }
  if (!std::ranges::all_of(*states, [&](const auto& task) { return has_ended(task.first); })) return;
  if (!at_hand_.empty() && at_hand_.size() == waiting_.size()) return;
  if (submitted_ && !has_brought_ && lost == 0) give_up(*states);
  submit();
}

void SlurmPool::lose(const TakenStep& step, const std::string& state) {
  taken_before_.erase(step.hash);
  if (spool_.is_done(step.hash) || spool_.is_kept(step.hash) || !waiting_.contains(step.hash)) return spool_.drop(step);
  if (++tries_[step.hash] < most_tries) {
    if (settings_.told)
      settings_.told(fmt::format("task {} ended ({}); what it was simulating goes to another", step.task, state));
    return spool_.give_back(step);
  }
  spool_.drop(step);
  StepFailure failure;
  failure.sentence = fmt::format("the Slurm task {} ended ({}) while it simulated this, as {} tasks before it did; its log is {}",
                                 step.task, state, most_tries - 1, spool_.log_of(step.task).string());
  at_hand_.push_back({step.hash, {.outcome = {.step = std::move(failure)}, .json = ""}});
}

void SlurmPool::submit() {
  const std::string script = (spool_.folder() / "task.sh").string();
  OutputFile file(script);
  file.write("#!/bin/sh\nexec " + in_single_quotes(settings_.program) + " slurm-task " +
             in_single_quotes(spool_.folder().string()) +
             (settings_.jobs > 0 ? " --jobs " + std::to_string(settings_.jobs) : "") + "\n");
  file.commit();
  const std::size_t tasks = std::clamp<std::size_t>(expected_, 1, settings_.tasks);
  const std::string job = submit_slurm_array({.name = "tandem-" + settings_.name,
                                              .script = script,
                                              .log = without_patterns((spool_.folder() / "logs").string()) + "/%A_%a.log",
                                              .tasks = tasks,
                                              .cpus = settings_.jobs,
                                              .arguments = settings_.arguments});
  arrays_ = {job};  // those before have ended
  spool_.set_arrays(arrays_);
  submitted_ = true;
  has_brought_ = false;
  between_looks_ = first_look;
  if (settings_.told)
    settings_.told(fmt::format("Slurm job {} has {} task{}; their logs are in {}", job.substr(0, job.find(';')), tasks,
                               tasks == 1 ? "" : "s", (spool_.folder() / "logs").string()));
}

/// An array that brought nothing would bring nothing again.
void SlurmPool::give_up(const std::map<std::string, std::string>& states) const {
  const std::string job = arrays_.back().substr(0, arrays_.back().find(';'));
  std::string state = "it is gone", said;
  for (const auto& [task, of_task] : states) {
    if (!task.starts_with(job + "_")) continue;
    state = of_task;
    if (said.empty()) said = last_line_of(spool_.log_of(task));
  }
  throw std::runtime_error(
      fmt::format("Slurm job {} ended ({}) before it brought a result; {}; the same command tries again", job, state,
                  said.empty() ? "no task has written a log; do all nodes see '" + spool_.folder().string() + "'?"
                               : "a task's last words are: " + said));
}

}  // namespace tandem::studies
