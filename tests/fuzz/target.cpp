#include "tests/fuzz/target.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <utility>

#include "runtime/base/input_error.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::fuzz {
namespace {

namespace fs = std::filesystem;

const fs::path repository = TANDEM_SOURCE_DIR;

std::vector<Target>& all_targets() {
  static std::vector<Target> all;
  return all;
}

bool is_of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.'; }

constexpr std::size_t longest_word = 40, most_words = 4000;

/// Whatever stands between double quotes and is one word.
void add_literals(const std::string& text, std::set<std::string>& words) {
  for (std::size_t from = text.find('"'); from != std::string::npos; from = text.find('"', from + 1)) {
    const std::size_t to = text.find_first_of("\"\n", from + 1);
    if (to == std::string::npos) return;
    const std::string word = text.substr(from + 1, to - from - 1);
    if (word.size() >= 2 && word.size() <= longest_word && std::ranges::all_of(word, is_of_word)) words.insert(word);
  }
}

void add_words(const std::string& text, std::set<std::string>& words) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::size_t end = at;
    while (end < text.size() && is_of_word(text[end])) ++end;
    if (end - at >= 2 && end - at <= longest_word) words.insert(text.substr(at, end - at));
    at = end;
  }
}

}  // namespace

const std::vector<Target>& targets() { return all_targets(); }

Registered::Registered(std::vector<Target> added) {
  for (Target& target : added) all_targets().push_back(std::move(target));
  std::ranges::sort(all_targets(), {}, &Target::name);
}

Answer answer_of(const Target& target, const std::string& bytes) {
  try {
    target.read(bytes);
    return {};
  } catch (const InputError& error) {
    return {.taken = false, .refusal = error.what()};
  }
}

void require(bool holds, const std::string& what) {
  if (!holds) throw std::logic_error(what);
}

std::string repository_file(const std::string& path) {
  if (!fs::is_regular_file(repository / path)) throw std::logic_error("there is no file " + path + " in the repository");
  return read_all(repository / path);
}

std::vector<std::string> repository_files(const std::string& folder, const std::string& ending) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(repository / folder))
    if (entry.is_regular_file() && entry.path().string().ends_with(ending)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<std::string> texts;
  for (const fs::path& path : paths) texts.push_back(read_all(path));
  return texts;
}

std::string scratch_file(const std::string& name, const std::string& bytes) {
  static const TemporaryFolder folder;
  std::string path = folder / name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::vector<std::string> words_of(const Target& target) {
  std::set<std::string> words;
  for (const std::string& path : target.words_of) {
    if (!fs::is_directory(repository / path)) {
      add_literals(repository_file(path), words);
      continue;
    }
    for (const char* ending : {".cpp", ".h"})
      for (const std::string& text : repository_files(path, ending)) add_literals(text, words);
  }
  if (target.seeds)
    for (const std::string& seed : target.seeds()) add_words(seed, words);
  std::vector<std::string> found(words.begin(), words.end());
  if (found.size() > most_words) found.resize(most_words);
  return found;
}

}  // namespace tandem::fuzz
