#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"
#include "sim/rank_spans.h"

namespace tandem::sim {

/// What draws with jitter of a folded DAG have in common of their members' arrivals (arrivals.h), worked out once. Arrivals are
/// numbered by task, and of each task by its successors; one that has none arrives at the end of the step. The DAG must outlive
/// it.
struct ArrivalPlan {
  explicit ArrivalPlan(const Dag& dag);

  /// Of a task that is a member of a collective.
  struct Membership {
    TaskId first_on_rank = no_id;  ///< of its unit: a rank of a class that sends to its own class is there twice
    std::uint32_t alike = 0;       ///< how many members of the communicator this task's rank stands for
  };
  std::vector<std::size_t> first_arrival;  ///< by task, and at the end how many arrivals there are
  std::vector<Membership> memberships;     ///< by task; `no_id` for kernels
  RankSpans spans;                         ///< of all communicators
};

/// Holds what draws that were made before tell of when the members of collectives arrive.
struct ArrivalPilots {
  struct Moments {
    Seconds mean = 0;
    double variance = 0;
  };
  ArrivalPlan plan;
  Timeline undisturbed;
  std::vector<Moments> excess{};  ///< by arrival; empty in the first pilots themselves
  bool are_wanted = false;        ///< a draw is to tell of its arrivals, too
};

}  // namespace tandem::sim
