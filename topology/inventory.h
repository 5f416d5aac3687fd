#pragma once

#include <vector>

#include "topology/cluster.h"

namespace tandem::topology {

/// The links of one tier, counted in one direction.
struct TierInventory {
  Tier tier = Tier::nvlink;
  std::int64_t ports = 0;   ///< GPUs, NICs, or switches' bundles of uplinks
  std::int64_t cables = 0;  ///< of all of them
  BytesPerSecond total = 0;
  /// The ratio of what may come from below to what a port of this tier carries, at the port where that is worst: below a NIC its
  /// wire, below a switch's uplinks the ports that hang on it. The ratio is less than 1 where a switch has ports to spare, and 0
  /// inside the node.
  double oversubscription = 0;
};

/// What a cluster is made of. Spines and cores are counted by the cables that can take different ways: each leaf of a pod has one
/// cable to each of its spines, and each pod one to each core. A core that takes several cables of a pod makes fewer of them. A
/// single pod needs no core, and its uplinks are left out: nothing ever crosses them.
struct Inventory {
  std::int64_t gpus = 0, nodes = 0, nics = 0;
  std::int64_t leaves = 0, pods = 0, spines = 0, cores = 0;
  std::vector<TierInventory> tiers = {};  ///< those that have links, from the GPU up
  BytesPerSecond bisection = 0;           ///< from half of the nodes to the other half; 0 for fewer than two nodes with NICs
  BytesPerSecond full_bisection = 0;      ///< what the NICs of one half can send by themselves
};

Inventory take_inventory(const Cluster& cluster);

}  // namespace tandem::topology
