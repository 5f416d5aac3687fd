#pragma once

#include <optional>

#include "scenarios/spec/scenario.h"
#include "studies/step/simulated_step.h"
#include "studies/step/step_result.h"

namespace tandem::studies {

/// Plays the policies of `training.sync`, and the synchronous one, over many steps of all data-parallel replicas
/// (sim/replica_play.h); returns nothing where there are none. `step` is the synchronous step, simulated.
///
/// What a replica's step takes by itself is simulated: the step of local SGD between two exchanges, which holds everything but
/// the exchange of gradients between replicas, on the whole cluster with all that is slow there. Replicas whose ranks are of the
/// same classes take the same time. With `faults.jitter` that step is drawn as `faults.jitter.draws` says, and the times of
/// replicas and steps come from the distribution of the draws (sim/drawn_time.h).
///
/// What the exchange adds, as far as it does not hide behind the backward, is the difference of the synchronous step and of the
/// slowest replica's own; the same without slow GPUs for those that have none, and in between for those in between. Replicas that
/// update the weights by themselves pay the same: with the weights sliced over the replicas, each of which serves its slice, a
/// replica sends and receives over its NICs what the reduce-scatter and the all-gather of an all-reduce do, bucket by bucket, and
/// the owners of a slice run Adam for it once per update, which in the time of a batch is Adam of all slices. A backup worker
/// that is dropped serves its slice all the same. Parameter servers of their own (`servers`) are nodes like the cluster's; all
/// replicas' updates queue at their NICs.
std::optional<SyncComparison> compare_sync_policies(const Scenario& scenario, const StepResult& step, bool folded,
                                                    SimulationOptions options);

}  // namespace tandem::studies
