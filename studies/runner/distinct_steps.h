#pragma once

#include <map>
#include <optional>
#include <string>

#include "studies/runner/step_runner.h"

namespace tandem::studies {

/// Scenarios and what became of them, each simulated once however often it is wanted. A scenario is known by its text.
class DistinctSteps {
 public:
  explicit DistinctSteps(StepWorkers workers) : workers_(workers) {}

  void want(StepJob job);
  /// Simulates what has been wanted since the last `run`. Throws as StepRunner does.
  void run(const OnRunProgress& told);

  bool has(const std::string& text) const { return outcomes_.contains(text); }
  /// Returns what became of a scenario that was wanted before the last `run`.
  const StepOutcome& of(const std::string& text) const { return *outcomes_.at(text); }

 private:
  StepWorkers workers_;
  std::map<std::string, StepJob> waiting_;
  std::map<std::string, std::optional<StepOutcome>> outcomes_;  ///< none yet where it waits
};

}  // namespace tandem::studies
