#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/units.h"
#include "scenarios/spec/scenario.h"
#include "studies/runner/run_progress.h"
#include "studies/runner/scenario_source.h"
#include "studies/step/step_result.h"

namespace tandem::studies {

/// Changes of a scenario that take memory off the fullest stage, simulated.
struct Relief {
  std::vector<std::string> levers;  ///< that were pulled: "recompute" (levers.h)
  std::vector<std::string> change;  ///< as path=value
  Bytes peak = 0;                   ///< of the fullest stage
  Seconds step_time = 0;
  bool fits = false;  ///< within the limit that was asked for
};

/// What makes a step fit that does not.
struct ReliefResult {
  std::vector<Relief> alone;   ///< of each lever the setting that is fastest among those that fit, else the one with least memory
  std::optional<Relief> plan;  ///< the fastest that fits among the simulated ones that pull fewest levers; none where none fits
  std::optional<Relief> least;  ///< where none fits: the one with the least memory of those that were simulated
  std::size_t tried = 0;        ///< combinations that the scenario admits and whose memory was bounded
  std::size_t simulated = 0;
};

struct ReliefOptions {
  std::size_t jobs = 1;  ///< simulations at once
  OnRunProgress told = {};
};

/// Looks for changes after which the fullest stage of `scenario`, which `source` holds and `step` is the simulation of, takes no
/// more than `limit`.
///
/// Every setting of every lever is tried, and every two of different levers; where none of these fits, ever more levers on those
/// that take least memory, until one fits or no lever is left. What takes too much memory by its lower bound
/// (search/step_bound.h) is not simulated; the others are, in the order of the lower bounds of their times, until none that is
/// left can be faster than the fastest that fits, or 24 of each number of levers are, or graphs of 3 million tasks in all. What
/// would make the graph itself many times larger (more micro-batches on longer rings) is not simulated either. The result depends
/// on nothing but the scenario and the limit. Throws Interrupted.
ReliefResult find_relief(const ScenarioSource& source, const Scenario& scenario, const StepResult& step, Bytes limit,
                         const ReliefOptions& options = {});

/// Returns the object `relief` of the JSON form of a lint.
nlohmann::ordered_json to_json_object(const ReliefResult& relief);

}  // namespace tandem::studies
