#include "scenarios/reading/embedded_files.h"

#include <algorithm>
#include <filesystem>

namespace tandem::scenarios {
namespace {

std::string path_in(std::string_view folder, std::string_view file) {
  return "scenarios/presets/" + std::string(folder) + "/" + std::string(file);
}

}  // namespace

const EmbeddedFile* find_embedded(std::string_view folder, std::string_view name) {
  const auto files = embedded_files();
  const auto found = std::ranges::find(files, path_in(folder, name) + ".yaml", &EmbeddedFile::path);
  return found == files.end() ? nullptr : &*found;
}

std::vector<std::string> embedded_names(std::string_view folder) {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_files())
    if (file.path.starts_with(path_in(folder, ""))) names.push_back(std::filesystem::path(file.path).stem().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace tandem::scenarios
