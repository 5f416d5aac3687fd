#pragma once

#include <string>
#include <vector>

#include "runtime/base/progress.h"
#include "scenarios/spec/scenario.h"

namespace tandem::studies {

/// One change of the scenario that takes memory off the fullest stage.
struct Relief {
  std::string change;  ///< as `--set` options
  Bytes peak = 0;      ///< of the fullest stage with that change alone, simulated
  Seconds step_time = 0;
};

/// Simulates what a planner would try, in this order: selective recompute, twice the context parallelism at half the data
/// parallelism, sequence parallelism, half the micro-batch. Leaves out changes that do not bring `peak` down or that the scenario
/// does not admit. `progress`, where there is one, is told how far the simulations are.
std::vector<Relief> memory_relief(const std::string& file, const std::vector<std::string>& overrides, const Scenario& scenario,
                                  Bytes peak, Progress* progress = nullptr);

}  // namespace tandem::studies
