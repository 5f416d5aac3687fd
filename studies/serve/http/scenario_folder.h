#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tandem::studies {

/// The folder whose scenarios are served.
class ScenarioFolder {
 public:
  /// Throws InputError where there is no such folder.
  explicit ScenarioFolder(const std::filesystem::path& folder);

  const std::filesystem::path& path() const { return path_; }
  /// Returns the names of its YAML files, sorted; at most a thousand.
  std::vector<std::string> names() const;
  /// Returns the text of one of them; nothing where there is none of that name.
  std::optional<std::string> text(const std::string& name) const;

 private:
  std::filesystem::path path_;

  bool is_scenario(const std::filesystem::path& file) const;
};

}  // namespace tandem::studies
