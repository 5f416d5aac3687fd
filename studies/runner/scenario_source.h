#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/reading/yaml_tree.h"
#include "studies/runner/step_job.h"

namespace tandem::studies {

/// A scenario's file with overrides, as far as it can be changed further: names tidied, options applied, presets not yet looked
/// up.
class ScenarioSource {
 public:
  /// Throws InputError for a file that is no scenario at all (no YAML, no such file).
  ScenarioSource(const std::string& path, const std::vector<std::string>& overrides);
  /// The same of a text; `path` is the file that it stands for, beside which its presets lie.
  static ScenarioSource of_text(const std::string& text, const std::filesystem::path& path,
                                const std::vector<std::string>& overrides);

  std::filesystem::path file() const { return file_; }
  /// Returns the document with its presets by name.
  const YamlNode& unresolved() const { return document_; }
  std::string name() const { return file_.stem().string(); }

  /// Returns the complete document with these further changes ("path=value"). Throws InputError.
  YamlNode resolved(const std::vector<std::string>& changes = {}) const;

  /// Returns the job of the scenario with these further changes; nothing where they make no scenario.
  std::optional<StepJob> changed(const std::vector<std::string>& changes) const;

 private:
  YamlNode document_;
  std::filesystem::path file_;

  ScenarioSource(YamlNode document, std::filesystem::path file, const std::vector<std::string>& overrides);
};

/// Returns changes as options of the command line: "--set parallelism.tp=4 --set 'training.recompute=[norm, mlp]'".
std::string set_options(const std::vector<std::string>& changes);

}  // namespace tandem::studies
