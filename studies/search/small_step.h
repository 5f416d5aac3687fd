#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/dag/dag.h"
#include "scenarios/spec/scenario.h"
#include "sim/kernel_times.h"

namespace tandem::studies {

/// Returns the scenario on as many stages, without data parallelism but for what experts need, on a healthy cluster that just
/// holds its ranks and packs them, those of tp first, then cp and ep: what a layer computes there takes no more time than in the
/// scenario, and what it sends neither, where `packs_alike` or its ranks are in one node.
Scenario on_small_cluster(Scenario scenario, std::int64_t stages);

/// Whether the scenario has no group of tp, cp or ep in fewer nodes than the small cluster has.
bool packs_alike(const Scenario& scenario);

/// Longest paths through the DAG of such a step, with every task at its idle time, which for matrix products is that without the
/// multiprocessors that they always leave to communication (`gemm_sm_margin`). Transfers between stages take none: these are the
/// schedule's.
class IdlePaths {
 public:
  /// `dag` must outlive it. `original`: the whole scenario, the slowest of whose GPUs sets the pace. What it may have in one node
  /// and the small cluster has in several takes no time.
  IdlePaths(Dag& dag, const Scenario& original);

  Seconds duration(TaskId id) const { return duration_[id]; }
  /// Returns how many multiprocessors a collective takes from kernels in the scenario at least: those of DeepEP's dispatch, which
  /// takes as many wherever its ranks are. Of others 0, for which other nodes may have fewer channels.
  std::int32_t least_taken(TaskId collective) const { return least_taken_[collective]; }
  /// Returns which share of a kernel's rate is lost while so many multiprocessors are taken: of a matrix product, beyond what its
  /// margin takes from it anyway.
  double loss(TaskId kernel, std::int32_t multiprocessors) const;
  /// The units of the DAG, each after all that it waits for.
  const std::vector<TaskId>& order() const { return order_; }

  /// From now on the later task starts no sooner than so long after the end of the earlier, for which it waits anyway.
  void hold_apart(TaskId earlier, TaskId later, Seconds least) { apart_.insert({earlier, {later, least}}); }

  /// By task: the end of the longest path from the source, which begins where the source starts or where it ends.
  struct Reached {
    std::vector<Seconds> start, end;  ///< -infinity where no path leads there
  };
  Reached from(TaskId source, bool from_end) const;

 private:
  const Dag& dag_;
  std::vector<TaskId> order_;
  std::vector<Seconds> duration_;
  std::vector<std::int32_t> least_taken_;  ///< by task
  std::optional<sim::KernelTimes> kernels_;
  std::multimap<TaskId, std::pair<TaskId, Seconds>> apart_;  ///< by the earlier
};

}  // namespace tandem::studies
