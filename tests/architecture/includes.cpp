#include "tests/architecture/includes.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

namespace tandem::architecture {
namespace {

bool is_source(const std::filesystem::path& file) {
  const std::string extension = file.extension();
  return extension == ".h" || extension == ".cpp" || extension == ".cu";
}

/// What an `#include` line names, with its opening quote or bracket in front.
std::optional<std::string> included(const std::string& line) {
  const std::size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string::npos || line[hash] != '#') return std::nullopt;
  const std::size_t word = line.find_first_not_of(" \t", hash + 1);
  if (word == std::string::npos || line.compare(word, 7, "include") != 0) return std::nullopt;
  const std::size_t open = line.find_first_of("\"<", word);
  if (open == std::string::npos) return std::nullopt;  // the name is a macro's
  return line.substr(open, line.find_first_of("\">", open + 1) - open);
}

void read_includes(const std::string& file, std::vector<Include>& found) {
  std::ifstream in(TANDEM_SOURCE_DIR "/" + file);
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (const std::optional<std::string> target = included(line))
      found.push_back({file, number, target->substr(1), target->front() == '"'});
  }
}

}  // namespace

std::vector<std::string> sources_below(const std::vector<std::string>& folders) {
  const std::filesystem::path root = TANDEM_SOURCE_DIR;
  std::vector<std::string> files;
  for (const std::string& folder : folders)
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder))
      if (is_source(entry.path())) files.push_back(entry.path().lexically_relative(root));
  std::ranges::sort(files);
  return files;
}

std::vector<Include> includes_below(const std::vector<std::string>& folders) {
  std::vector<Include> found;
  for (const std::string& file : sources_below(folders)) read_includes(file, found);
  return found;
}

std::string top_folder(const std::string& file) { return file.substr(0, file.find('/')); }

std::string room_of(const std::string& file) {
  const std::string folder = std::filesystem::path(file).parent_path();
  const bool for_gpus = file.ends_with(".cu") || file.ends_with("_device.h");
  const bool of_module = (folder == "runtime/ops" && for_gpus) || folder == "runtime/cuda/emulation";
  return of_module ? "runtime/cuda/module" : folder;
}

}  // namespace tandem::architecture
