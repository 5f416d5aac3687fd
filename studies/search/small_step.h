#pragma once

#include <cstdint>
#include <vector>

#include "runtime/dag/dag.h"
#include "scenarios/spec/scenario.h"

namespace tandem::studies {

/// Returns the scenario on as many stages, without data parallelism but for what experts need, on a healthy cluster that just
/// holds its ranks and packs them, those of tp first, then cp and ep: what a layer computes there takes no more time than in the
/// scenario, and what it sends neither, where `packs_alike` or its ranks are in one node.
Scenario on_small_cluster(Scenario scenario, std::int64_t stages);

/// Whether the scenario has no group of tp, cp or ep in fewer nodes than the small cluster has.
bool packs_alike(const Scenario& scenario);

/// Longest paths through the DAG of such a step, with every task at its idle time. Transfers between stages take none: these are
/// the schedule's.
class IdlePaths {
 public:
  /// `dag` must outlive it. `original`: the whole scenario, the slowest of whose GPUs sets the pace. What it may have in one node
  /// and the small cluster has in several takes no time.
  IdlePaths(Dag& dag, const Scenario& original);

  Seconds duration(TaskId id) const { return duration_[id]; }
  /// The units of the DAG, each after all that it waits for.
  const std::vector<TaskId>& order() const { return order_; }

  /// By task: the end of the longest path from the source, which begins where the source starts or where it ends.
  struct Reached {
    std::vector<Seconds> start, end;  ///< -infinity where no path leads there
  };
  Reached from(TaskId source, bool from_end) const;

 private:
  const Dag& dag_;
  std::vector<TaskId> order_;
  std::vector<Seconds> duration_;
};

}  // namespace tandem::studies
