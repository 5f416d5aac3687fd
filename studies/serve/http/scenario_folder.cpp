#include "studies/serve/http/scenario_folder.h"

#include <algorithm>
#include <system_error>

#include "runtime/base/input_error.h"
#include "runtime/base/nearest.h"
#include "runtime/base/text_file.h"

namespace tandem::studies {

namespace {
namespace fs = std::filesystem;
}

ScenarioFolder::ScenarioFolder(const fs::path& folder) {
  std::error_code error;
  path_ = fs::canonical(folder, error);
  if (error || !fs::is_directory(path_))
    throw InputError({"--folder", 0, 0}, excerpt(folder.string()) + " is no folder, expected one with scenarios");
}

/// A file of this very folder: a link may lead elsewhere.
bool ScenarioFolder::is_scenario(const fs::path& file) const {
  std::error_code error;
  if (file.extension() != ".yaml" && file.extension() != ".yml") return false;
  const fs::path real = fs::canonical(file, error);
  return !error && real.parent_path() == path_ && fs::is_regular_file(real, error);
}

std::vector<std::string> ScenarioFolder::names() const {
  constexpr std::size_t most = 1000;
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, error))
    if (is_scenario(entry.path()) && names.size() < most) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

std::optional<std::string> ScenarioFolder::text(const std::string& name) const {
  const fs::path file = path_ / fs::path(name).filename();
  if (fs::path(name) != file.filename() || !is_scenario(file)) return {};
  return read_text_file(file.string(), "a scenario in YAML");
}

}  // namespace tandem::studies
