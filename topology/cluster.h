#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/network.h"
#include "topology/cluster_spec.h"

namespace tandem {

/// Where a communicator lies on the physical cluster: its ring and every physical link it crosses.
struct PhysicalRing {
  std::uint32_t channels = 1;
  std::uint32_t nodes = 1;
  Seconds intra_latency = 0;
  Seconds inter_latency = 0;
  std::vector<Crossing> crossings;  ///< physical links; a link may appear more than once, its multiplicities add up
};

inline constexpr std::uint32_t no_device = 0xFFFFFFFF;

/// What a GPU hangs on, from itself up: GPU, NIC, leaf, pod (`no_device` where there is none). Device d has the links 2d (out)
/// and 2d + 1 (in).
struct Attachment {
  std::uint32_t node = 0;
  std::array<std::uint32_t, 4> devices{no_device, no_device, no_device, no_device};
};

/// Nodes of GPUs behind NVSwitches, one NIC per rail, and a fat tree of two or three tiers between the nodes.
///
/// Switches of a tier that serve the same leaf (or pod) are taken together: under ideal spreading every one of the parallel links
/// between two tiers carries the same fraction of every flow, so a bundle with their summed capacity shares in the same way.
/// Physical links, all directed:
///   per GPU   to and from the NVSwitches        nvlink_GBps x efficiency
///   per NIC   to and from its leaf              nic_gbps / 8 x efficiency / oversubscription[0]
///   per leaf  bundle to and from the spines     leaf_ports NICs / oversubscription[1]
///   per pod   bundle to and from the core       pod_leaves leaves / oversubscription[2], three tiers only
class Cluster {
 public:
  explicit Cluster(const ClusterSpec& spec);

  std::size_t device_count() const { return first_pod_ + static_cast<std::size_t>(pods_); }
  std::size_t link_count() const { return 2 * device_count(); }
  Link link(LinkId id) const;
  std::vector<Link> links() const;  ///< all of them: many, on a large cluster

  std::int64_t gpus() const { return spec_.gpus; }
  std::int64_t nodes() const { return nodes_; }
  std::int64_t node_of(std::uint32_t gpu) const { return gpu / spec_.gpus_per_node; }
  Attachment attachment(std::uint32_t gpu) const;

  /// The ring over `members` (GPUs, ascending by node) as NCCL lays it. Inside one node: one ring through the NVSwitches. Over k
  /// nodes with L members each: L channels, each entering and leaving every node on its own rail, so that each NIC carries 1/L
  /// of the data and each NVLink port (L-1)/L. With unequal numbers per node: one channel.
  PhysicalRing ring(std::span<const std::uint32_t> members) const;

  /// An all-to-all over `members`, ascending: the messages of all pairs at once, each on its own way; one channel carries what
  /// one pair exchanges, and the links are crossed as often as pairs use them.
  PhysicalRing exchange(std::span<const std::uint32_t> members) const;

  /// The same for expert dispatch in which each token goes to `choices` members that lie in `nodes` < `choices` nodes: it crosses
  /// to a node once, to the GPU there of the sender's place, which passes it on inside. With L members in each of N nodes and s
  /// bytes per pair, a GPU's NIC carries (N - 1) L s nodes/choices and its NVLink port N (L - 1) s, for what comes from outside
  /// is passed on unless it has arrived already (1 in L).
  PhysicalRing dispatch(std::span<const std::uint32_t> members, std::uint32_t choices, std::uint32_t nodes) const;

  /// The way of a send from one GPU to another.
  PhysicalRing pair(std::uint32_t source, std::uint32_t destination) const;

 private:
  ClusterSpec spec_;
  std::int64_t nodes_ = 0;
  std::int64_t rails_ = 0;
  std::int64_t leaves_ = 0;
  std::int64_t pods_ = 0;
  std::uint32_t first_nic_ = 0, first_leaf_ = 0, first_pod_ = 0;  ///< devices: GPUs first
  BytesPerSecond nvlink_ = 0, nic_ = 0, leaf_ = 0, pod_ = 0;      ///< capacities

  static LinkId out_of(std::int64_t device) { return static_cast<LinkId>(2 * device); }
  static LinkId into(std::int64_t device) { return static_cast<LinkId>(2 * device + 1); }
  std::int64_t nic_of(std::uint32_t gpu) const;
  std::int64_t leaf_of(std::int64_t nic) const;
  std::int64_t pod_of(std::int64_t leaf) const { return leaf / spec_.fabric.pod_leaves; }
  /// Appends the links from `from`'s NIC to `to`'s and returns the latency of the hop.
  Seconds cross_fabric(std::int64_t from_nic, std::int64_t to_nic, std::vector<Crossing>& crossings) const;
};

}  // namespace tandem
