#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "runtime/dag/dag.h"
#include "scenarios/spec/scenario.h"
#include "topology/cluster.h"

namespace tandem::studies {

/// Computes how long transfers between stages and between replicas take on the whole cluster when it is healthy and idle. All
/// times are those of the rank at the origin of the mesh and of the ranks in line with it.
class MeshNetwork {
 public:
  /// Returns the time of one collective over the ranks that share weights (with `experts`, the experts' weights). Returns 0 for
  /// a single rank and for a collective in two levels.
  Seconds data(const Scenario& scenario, OpKind op, Bytes bytes, bool experts);
  /// Returns how many ranks these are.
  std::size_t data_members(const Scenario& scenario, bool experts);
  /// Returns the time of a transfer of `bytes` from each stage to the next; the last entry is from the last stage to the first.
  std::vector<Seconds> between_stages(const Scenario& scenario, Bytes bytes);

 private:
  struct Laid {
    Layout data, expert_data;
    std::size_t data_members = 1, expert_members = 1;
    std::vector<Layout> pairs;
    std::map<std::tuple<OpKind, Bytes, bool>, Seconds> data_times;  ///< that were asked for
  };
  struct OnCluster {
    std::unique_ptr<Cluster> cluster;
    std::vector<Link> links;
  };
  /// Tells scenarios of the same model and kind of cluster apart.
  struct Key {
    std::int64_t gpus, tp, pp, cp, ep, etp, dp;
    int zero;
    bool own_expert_axis, local_steps;
    std::vector<Axis> order;
    RankPlacement::Kind placement;
    std::vector<std::uint32_t> listed_gpus;
    auto operator<=>(const Key&) const = default;
  };
  std::map<std::int64_t, OnCluster> clusters_;  ///< by GPUs
  std::map<Key, Laid> laid_;

  const OnCluster& cluster_of(const Scenario& scenario);
  Laid& laid(const Scenario& scenario);
};

}  // namespace tandem::studies
