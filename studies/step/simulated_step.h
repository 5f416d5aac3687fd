#pragma once

#include <functional>
#include <vector>

#include "runtime/analysis/memory_over_time.h"
#include "runtime/base/progress.h"
#include "runtime/base/stopwatch.h"
#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/spec/scenario.h"
#include "sim/simulate.h"
#include "studies/step/step_result.h"

namespace tandem::studies {

/// A scenario's step, lowered, simulated and summed up. Under local SGD `sync_every` may be hundreds of steps, which are two
/// kinds: one step of each is simulated, `result` is the mean over a period, and `dag` is the step that averages weights.
struct SimulatedStep {
  Dag dag;
  Timeline timeline;
  StepResult result;
  std::vector<RankIndex> class_of = {};     ///< by world rank: the lowered rank that stands for it
  std::vector<MemoryOverTime> memory = {};  ///< of the fullest rank of each pipeline stage, where it was asked for
};

/// A step that was just simulated, while it lives.
struct FreshStep {
  const World& world;  ///< on which `dag` was lowered
  const Dag& dag;
  const Timeline& timeline;
  bool folded = false;
  Collectives collectives = Collectives::fluid;
};

/// Ranks, or classes of them, whose tasks a machine has room for.
inline constexpr std::int64_t most_lowered_ranks = 4096;

/// How closely to look.
struct SimulationOptions {
  double fold_tolerance = 0;  ///< see CableMerge; the result then tells what step times it can be off by
  Collectives collectives = Collectives::fluid;
  Progress* progress = nullptr;  ///< is told how far it is
  /// Leaves out what repeats itself (folded_time.h): `dag` and `timeline` may then be those of a step with fewer micro-batches,
  /// of which `timeline.repeat` says what stands for more.
  bool fold_time = false;
  /// Simulates one of two pipeline stages that mirror each other (scenarios/mesh/mirrored_stages.h): `dag` and `timeline` may
  /// then be without the other, for which ranks of the one stand, too.
  bool fold_mirrors = false;
  bool memory_over_time = false;  ///< is asked for
  /// Is told of the step before it is summed up, so that who simulates it once more can begin. Where a step is tried that has
  /// fewer micro-batches, or trees that tell no ranks apart, several may be told of, of which the last is that of `dag`.
  std::function<void(const FreshStep&)> simulated = {};
  /// This process simulates nothing after the step: its last simulation may be done here (sim::simulate_here).
  bool ends_process = false;
};

/// Collectives in steps take a scenario that is not folded.
SimulatedStep simulate_step(const Scenario& scenario, bool folded, const SimulationOptions& options = {});

/// Simulates these steps and no others: under local SGD those of one kind.
SimulatedStep simulate_steps(const Scenario& scenario, bool folded, const SimulationOptions& options, const StepRange& steps);

/// Does the same as `tandem simulate`: simulates the step, draws it with jitter where the scenario asks for that, and says in
/// `result.run` what `stopwatch` says that all this took.
SimulatedStep simulate_in_full(const Scenario& scenario, bool folded, const SimulationOptions& options = {},
                               const Stopwatch& stopwatch = {});

/// Returns the mean over `sync_every` steps of which the last is `sync` and the others are `local`. Times and bounds are means,
/// memory is that of the fuller step.
StepResult mean_of_period(const StepResult& local, const StepResult& sync, std::int64_t sync_every);

}  // namespace tandem::studies
