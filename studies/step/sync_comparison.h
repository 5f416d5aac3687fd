#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/base/units.h"
#include "scenarios/spec/scenario.h"

namespace tandem::studies {

/// So many of the applied gradients were computed from weights that lacked `from` to `to` updates.
struct StalenessBin {
  std::int64_t from = 0, to = 0;
  double share = 0;

  bool operator==(const StalenessBin&) const = default;
};

/// What became of data-parallel replicas under a policy (training.sync). A *batch* is as many gradients as there are replicas:
/// what the synchronous step takes.
struct PlayedPolicy {
  SyncPolicy policy;
  std::int64_t applied = 0, dropped = 0;  ///< gradients
  Seconds update_time = 0;                ///< from one update of the weights to the next, mean
  Seconds batch_time = 0;                 ///< in which a batch of gradients is applied
  double tokens_per_second_per_gpu = 0;   ///< of applied gradients
  double speedup = 1;                     ///< of these over those of the synchronous policy
  double dropped_share = 0;               ///< of the gradients that were computed
  double wasted_share = 0;                ///< of the replicas' time: on gradients that were dropped
  double waiting_share = 0;               ///< of the replicas' time: for each other, without the exchange
  double mean_staleness = 0;              ///< updates that the weights lacked which an applied gradient was computed from
  std::int64_t most_stale = 0;
  double serving_share = 0;     ///< of the time: that parameter servers were busy
  std::int64_t most_ahead = 0;  ///< steps that a replica was ahead of the slowest when it began one
  std::vector<StalenessBin> staleness = {};
};

/// Policies against stragglers beside each other, the synchronous one first.
struct SyncComparison {
  std::int64_t replicas = 0, ranks_of_replica = 0;
  std::int64_t steps = 0;    ///< counted of each policy, after as many that were not
  Seconds fastest_step = 0;  ///< of a replica by itself, undisturbed
  Seconds slowest_step = 0;
  Seconds deviation = 0;                  ///< of the drawn ones of the replica that varies most; 0 without jitter
  Seconds synchronous_exchange = 0;       ///< what gradients add to the step of the slowest replica
  Seconds exchange = 0;                   ///< the same where no GPU is slow, to replicas that have none
  std::optional<Seconds> averaging = {};  ///< of weights, which local SGD pays in place of it
  std::vector<PlayedPolicy> policies = {};
};

}  // namespace tandem::studies
