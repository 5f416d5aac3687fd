#pragma once

#include <string>
#include <variant>
#include <vector>

#include "runtime/dag/site.h"
#include "scenarios/reading/yaml_tree.h"
#include "scenarios/spec/scenario.h"
#include "studies/runner/flat_json.h"
#include "studies/runner/step_failure.h"
#include "studies/step/step_result.h"

namespace tandem::studies {

/// A scenario to be simulated, and what its row in a cache says of it.
struct StepJob {
  std::variant<StepFailure, Scenario> scenario;  ///< validated, or why it was refused
  std::string text;                              ///< the complete scenario in YAML, which is hashed and stored
  Site site = {};                                ///< where its GPUs stand, if that is no part of the text
  std::string study = {};
  std::size_t point = 0;               ///< index in the study
  std::vector<NamedCell> values = {};  ///< of the fields that vary in the study
};

/// Makes the job of a complete document, which gets the default name where it has none, and validates the scenario. Where the
/// scenario is refused, the job holds the refusal.
StepJob job_of(YamlNode document, const std::string& default_name);

/// Returns the time of day in UTC as ISO 8601, to the second.
std::string utc_now();

/// What became of a job.
struct StepOutcome {
  std::variant<StepFailure, StepResult> step;
  std::string started = {};  ///< by utc_now
  Seconds seconds = 0;       ///< that the job's process took
  bool from_cache = false;

  const StepResult* result() const { return std::get_if<StepResult>(&step); }     ///< null for a failure
  const StepFailure* failure() const { return std::get_if<StepFailure>(&step); }  ///< null for a result
  bool fits() const { return result() != nullptr && result()->fits(); }
};

}  // namespace tandem::studies
