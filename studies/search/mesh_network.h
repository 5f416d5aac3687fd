#pragma once

#include <map>
#include <memory>
#include <vector>

#include "runtime/dag/dag.h"
#include "scenarios/spec/scenario.h"
#include "topology/cluster.h"

namespace tandem::studies {

/// Idle times on the whole, healthy cluster of what crosses it between stages and replicas, for the rank at the origin of the
/// mesh and those in line with it.
class MeshNetwork {
 public:
  /// One collective over the ranks that share weights; of the experts' weights with `experts`. Nothing where that is one rank, or
  /// where it works in two levels.
  Seconds data(const Scenario& scenario, OpKind op, Bytes bytes, bool experts);
  /// From each stage to the next, and from the last on to the first. Of so many bytes.
  std::vector<Seconds> between_stages(const Scenario& scenario, Bytes bytes);

 private:
  struct Laid {
    Layout data, expert_data;
    std::size_t data_members = 1, expert_members = 1;
    std::vector<Layout> pairs;
  };
  struct OnCluster {
    std::unique_ptr<Cluster> cluster;
    std::vector<Link> links;
  };
  /// Of scenarios with the same model and kind of cluster.
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
  const Laid& laid(const Scenario& scenario);
};

}  // namespace tandem::studies
