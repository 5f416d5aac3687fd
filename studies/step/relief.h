#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/terminal/progress.h"
#include "scenarios/spec/scenario.h"

namespace tandem {

/// One change of the scenario that takes memory off the fullest stage.
struct Relief {
  std::string change;  ///< as `--set` options
  Bytes peak = 0;      ///< of the fullest stage with that change alone, simulated
  Seconds step_time = 0;
};

/// Tries what a planner would, in this order: selective recompute, twice the context parallelism at half the data parallelism,
/// sequence parallelism, half the micro-batch. Changes that do not bring
/// `peak` down, or that the scenario does not admit, are left out. `bar`, where there is one, shows how far it is.
std::vector<Relief> memory_relief(const StepOptions& options, const Scenario& scenario, Bytes peak, ProgressBar* bar = nullptr);

/// A table under a heading; nothing where nothing would relieve it.
std::string to_text(const std::vector<Relief>& reliefs, const Screen& screen = {});

}  // namespace tandem
