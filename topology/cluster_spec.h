#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/dag/device.h"

namespace tandem::topology {

/// How flows choose among parallel links between two tiers of switches.
enum class FlowRouting : std::uint8_t {
  adaptive,  ///< ideal spreading: every flow in equal fractions over all shortest paths
  ecmp       ///< each flow on one of them, by a hash: collisions and all
};

/// From `first` to `last`, both included.
struct IndexRange {
  std::int64_t first = 0, last = 0;

  bool contains(std::int64_t index) const { return index >= first && index <= last; }
};

/// One switch of a fabric that is written down switch by switch.
struct SwitchSpec {
  struct Uplink {
    std::string to;
    std::int64_t cables = 1;
    double gbps = 0;  ///< each, per direction
  };
  std::string name;
  std::vector<IndexRange> nics = {};  ///< that hang on it; NIC n * nics_per_node + i is the i-th of node n
  std::vector<Uplink> up = {};
};

/// Switches between the nodes' NICs. Ports are counted in NICs of `nic_gbps`.
struct FabricSpec {
  enum class Kind : std::uint8_t {
    fat_tree,
    dragonfly_plus,  ///< groups of leaves and spines, like pods; every two groups are joined directly
    one_switch,      ///< all NICs on one switch that never blocks
    custom           ///< as `switches` says
  };
  Kind kind = Kind::fat_tree;
  int tiers = 3;                                  ///< 2: leaf, spine; 3: leaf, spine, core (or other groups' spines)
  bool rail_optimized = true;                     ///< NIC i of every node of a group hangs on leaf i
  std::int64_t leaf_ports = 32;                   ///< NICs below one leaf
  std::int64_t pod_leaves = 32;                   ///< leaves below one pod's spines (rail-optimised: per pod, all rails together)
  std::vector<double> oversubscription{1, 1, 1};  ///< per tier: NIC to leaf, leaf to spine, spine to core
  FlowRouting routing = FlowRouting::adaptive;
  std::uint64_t ecmp_seed = 1;
  std::int64_t flows = 1;  ///< queue pairs per connection of two NICs, each of which is hashed by itself
  std::vector<SwitchSpec> switches = {};

  /// Returns whether switches have less bandwidth upwards than downwards, so that it matters which ranks are near each other.
  /// Says nothing of custom fabrics.
  bool is_oversubscribed() const {
    if (kind == Kind::one_switch || kind == Kind::custom) return false;
    for (std::size_t tier = 1; tier < oversubscription.size() && tier < static_cast<std::size_t>(tiers); ++tier)
      if (oversubscription[tier] > 1) return true;
    return false;
  }
};

/// Says how a node's GPUs reach their NICs through PCIe. Where it is empty, NIC i * nics / gpus is GPU i's, and PCIe is never in
/// the way.
struct PcieSpec {
  std::vector<std::int64_t> nic_of_gpu;
  struct Port {
    std::string name;
    double GBps = 0;                 ///< per direction
    std::vector<std::int64_t> gpus;  ///< whose way to their NIC goes through it
  };
  std::vector<Port> ports;
};

/// Says how a node's GPUs reach the memory of their host, which what is offloaded is moved to. With a link each GPU has one of
/// its own, and its messages to NICs cross it, too.
struct HostSpec {
  double link_GBps = 0;  ///< of one GPU, per direction; 0: not known
  double link_latency_us = 0;
  double memory_GBps = 0;  ///< of a node, for all that its CPUs read and write; 0: not known
};

/// A link that is slow or dead: all of a port or bundle, or one cable of a bundle.
struct LinkFault {
  enum class Where : std::uint8_t {
    gpu,  ///< a GPU's NVLink port
    nic,
    rail,  ///< NIC `index` of every node
    leaf,  ///< the cables from a leaf switch up
    pod    ///< those from a pod's spines up
  };
  Where where = Where::nic;
  std::int64_t index = 0;
  std::int64_t cable = -1;  ///< of a leaf or pod; -1: all
  double factor = 0;        ///< share of the speed that is left; 0: dead
};

/// Nodes whose GPUs are of another model.
struct OtherGpus {
  std::vector<IndexRange> nodes;
  Device gpu;
};

/// How the GPUs of a node are joined.
enum class NodeLinks : std::uint8_t {
  switched,  ///< each has a port to switches that never block
  mesh       ///< each two have a link of their own, as over xGMI
};

struct ClusterSpec {
  std::string name;
  std::int64_t gpus = 0;
  Device gpu;
  std::vector<OtherGpus> other_gpus = {};
  std::int64_t gpus_per_node = 8;
  double nvlink_GBps = 0;  ///< per GPU and direction, in a mesh of all its links together
  NodeLinks node_links = NodeLinks::switched;
  std::int64_t nvswitch_planes = 1;
  bool nvls = false;  ///< NVSwitches that reduce and multicast
  std::int64_t nics_per_node = 8;
  double nic_gbps = 0;           ///< gigabits per second, per NIC and direction
  double nvlink_efficiency = 1;  ///< achievable share of the wire rate, protocol included
  double nic_efficiency = 1;
  double nvlink_latency_us = 0;  ///< one ring hop inside the node
  double nic_latency_us = 0;     ///< one ring hop between nodes, without the switches
  double switch_latency_us = 0;  ///< each switch crossed
  PcieSpec pcie;
  HostSpec host;
  FabricSpec fabric;
  std::vector<LinkFault> link_faults;
};

}  // namespace tandem::topology
