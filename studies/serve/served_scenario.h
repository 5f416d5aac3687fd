#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "studies/runner/scenario_source.h"

namespace tandem::studies {

/// A scenario as a page sends it.
struct ServedScenario {
  std::string name;                  ///< of its file, as messages say it; the file need not exist
  std::string text;                  ///< in YAML
  std::vector<std::string> changes;  ///< laid over it, as for --set

  /// Throws InputError where `body` has no such fields.
  static ServedScenario from_json(const nlohmann::ordered_json& body);
};

/// Returns the scenario, presets not yet looked up, once it is known to name no file outside `folder`. Throws InputError.
ScenarioSource source_of(const ServedScenario& scenario, const std::filesystem::path& folder);

/// Returns the scenario as a file has it: with the changes, presets by name.
std::string text_of(const ServedScenario& scenario, const std::filesystem::path& folder);

}  // namespace tandem::studies
