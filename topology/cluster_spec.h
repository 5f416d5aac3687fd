#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/device.h"

namespace tandem {

/// Switches between the nodes' NICs. Ports are counted in NICs of `nic_gbps`.
struct FabricSpec {
  enum class Kind : std::uint8_t {
    fat_tree
  };
  Kind kind = Kind::fat_tree;
  int tiers = 3;                                  ///< 2: leaf, spine; 3: leaf, spine, core
  bool rail_optimized = true;                     ///< NIC i of every node of a group hangs on leaf i
  std::int64_t leaf_ports = 32;                   ///< NICs below one leaf
  std::int64_t pod_leaves = 32;                   ///< leaves below one pod's spines (rail-optimised: per pod, all rails together)
  std::vector<double> oversubscription{1, 1, 1};  ///< per tier: NIC to leaf, leaf to spine, spine to core
};

struct ClusterSpec {
  std::string name;
  std::int64_t gpus = 0;
  Device gpu;
  std::int64_t gpus_per_node = 8;
  double nvlink_GBps = 0;  ///< per GPU and direction
  std::int64_t nics_per_node = 8;
  double nic_gbps = 0;           ///< gigabits per second, per NIC and direction
  double nvlink_efficiency = 1;  ///< achievable share of the wire rate, protocol included
  double nic_efficiency = 1;
  double nvlink_latency_us = 0;  ///< one ring hop inside the node
  double nic_latency_us = 0;     ///< one ring hop between nodes, without the switches
  double switch_latency_us = 0;  ///< each switch crossed
  FabricSpec fabric;
};

}  // namespace tandem
