#include "studies/step/simulation_limits.h"

#include <string>

#include "runtime/base/input_error.h"
#include "studies/step/simulated_step.h"

namespace tandem::studies {

void refuse_beyond_limits(const Scenario& scenario, bool folded, Collectives collectives) {
  constexpr std::int64_t most_in_steps = 256;
  const std::int64_t ranks = scenario.parallelism.world_size();
  if (!folded && ranks > most_lowered_ranks) {
    throw InputError({"--no-fold", 0, 0}, "every one of " + std::to_string(ranks) + " ranks would be lowered; expected at most " +
                                              std::to_string(most_lowered_ranks));
  }
  if (collectives != Collectives::steps) return;
  if (ranks > most_in_steps) {
    throw InputError({"--collectives steps", 0, 0}, "every message between " + std::to_string(ranks) +
                                                        " ranks would be simulated; expected at most " +
                                                        std::to_string(most_in_steps) + " ranks, or --collectives fluid");
  }
  if (scenario.cluster.node_links == NodeLinks::mesh)
    throw InputError({"--collectives steps", 0, 0},
                     "rings in a mesh of a node spread over all of its links at once, which is not simulated message by message; "
                     "expected --collectives fluid, or cluster.node_links switched");
  if (!scenario.training.sync.empty())
    throw InputError({"--collectives steps", 0, 0},
                     "training.sync plays replicas by collectives as wholes; expected --collectives fluid");
  if (scenario.jitter.enabled())
    throw InputError({"--collectives steps", 0, 0}, "faults.jitter varies collectives as wholes; expected --collectives fluid");
}

}  // namespace tandem::studies
