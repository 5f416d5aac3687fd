#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/dag/network.h"
#include "topology/cluster_spec.h"
#include "topology/crossing_sum.h"
#include "topology/fabric.h"

namespace tandem::topology {

inline constexpr std::uint32_t no_device = 0xFFFFFFFF;

/// The devices that a GPU hangs on, from itself up: GPU, PCIe port, NIC, leaf's bundle, pod's bundle (`no_device` where there is
/// none). Device d has the links 2d (away from the GPU) and 2d + 1 (towards it).
struct Attachment {
  std::uint32_t node = 0;
  std::array<std::uint32_t, 5> devices{no_device, no_device, no_device, no_device, no_device};
};

/// Nodes of GPUs behind NVSwitches or in a mesh, their NICs, and the fabric between those.
///
/// Physical links, all directed:
///   per GPU      to and from the NVSwitches     nvlink_GBps x efficiency
///   in a mesh, per two GPUs of a node           nvlink_GBps x efficiency / (gpus_per_node - 1)
///   per PCIe port that can be in the way        GBps
///   per GPU with a link to its host             host.link_GBps, as a port of its own
///   per NIC      to and from its leaf           nic_gbps / 8 x efficiency / oversubscription[0]
///   per bundle of the fabric, or under ECMP per cable of it (see Fabric)
/// A node's planes of NVSwitches are taken together, as a bundle is: GPUs spread over them.
class Cluster {
 public:
  /// Throws TopologyError: for the fabric's reasons, and where all NICs of a node are dead.
  explicit Cluster(const ClusterSpec& spec);

  std::size_t device_count() const { return device_count_; }
  std::size_t link_count() const { return 2 * device_count(); }
  Link link(LinkId id) const;
  Link unnamed_link(LinkId id) const;  ///< the same without its name, which takes the longest
  std::vector<Link> links() const;     ///< all of them: many, on a large cluster
  /// Derives what one channel of `paths` reaches, as `Paths` says, from its crossings.
  void find_rates(Paths& paths) const;

  std::int64_t gpus() const { return spec_.gpus; }
  std::int64_t nodes() const { return nodes_; }
  std::int64_t node_of(std::uint32_t gpu) const { return gpu / static_cast<std::uint32_t>(spec_.gpus_per_node); }
  const ClusterSpec& spec() const { return spec_; }
  const Fabric& fabric() const { return fabric_; }

  /// Returns whether a GPU's attachment tells all about its links: no mesh, no fault, no hash, and one way up.
  bool is_regular() const;
  Attachment attachment(std::uint32_t gpu) const;

  /// Adds `times` messages between two GPUs of a node to `sum`.
  void cross_node(std::uint32_t from, std::uint32_t to, std::uint32_t times, CrossingSum& sum) const;

  /// Adds `times` messages from a GPU to others of its node, spread evenly over `peers`, among which it may be itself. Where all
  /// peers do so, each receives as many.
  void cross_evenly(std::uint32_t from, std::span<const std::uint32_t> peers, std::uint32_t times, CrossingSum& sum) const;

  /// Crosses the fabric between GPUs of two nodes, from NIC to NIC. Returns the latency of the hop. A GPU whose NICs are dead
  /// uses the next of its node that is alive, over NVLink. Throws TopologyError where dead cables leave a hashed flow no way.
  Seconds cross_fabric(std::uint32_t from, std::uint32_t to, std::uint32_t times, CrossingSum& sum) const;

  /// Adds a copy from the GPU to the memory of its host (`out`), or back.
  void cross_to_host(std::uint32_t gpu, bool out, CrossingSum& sum) const;
  Seconds host_latency() const;

  /// Returns the GPU in `gpu`'s node that has the NIC of `other`'s rail; `gpu` itself where none does.
  std::uint32_t on_rail_of(std::uint32_t gpu, std::uint32_t other) const;

  Seconds intra_latency() const;
  BytesPerSecond nic_capacity() const { return nic_; }  ///< of a NIC without fault
  LinkId first_fabric_link() const { return out_of(first_bundle_); }

 private:
  struct Exit {
    std::int64_t nic = 0;
    std::uint32_t gpu = 0;  ///< that it hangs on
  };
  ClusterSpec spec_;
  Fabric fabric_;
  std::int64_t nodes_ = 0;
  /// Devices: first GPUs, or in a mesh pairs of them, node by node.
  std::uint32_t first_pcie_ = 0, first_nic_ = 0, first_bundle_ = 0, device_count_ = 0;
  BytesPerSecond nvlink_ = 0, nic_ = 0;                 ///< capacities
  std::vector<std::vector<std::int64_t>> nics_of_gpu_;  ///< by place in the node; the first is the rail
  std::vector<std::uint32_t> cable_device_;             ///< by bundle; under ECMP its first cable's device
  bool plain_nics_ = false;                             ///< every GPU has one NIC, alive, and nothing in between

  static LinkId out_of(std::int64_t device) { return static_cast<LinkId>(2 * device); }
  static LinkId into(std::int64_t device) { return static_cast<LinkId>(2 * device + 1); }
  std::int64_t place_in_node(std::uint32_t gpu) const { return gpu % static_cast<std::uint32_t>(spec_.gpus_per_node); }
  std::int64_t nic_device(std::int64_t nic) const { return first_nic_ + nic; }
  bool is_mesh() const { return spec_.node_links == NodeLinks::mesh; }
  std::int64_t pairs_of_node() const { return spec_.gpus_per_node * (spec_.gpus_per_node - 1) / 2; }
  LinkId link_of_pair(std::uint32_t from, std::uint32_t to) const;
  std::array<std::uint32_t, 2> pair_of(std::uint32_t device) const;
  void cross_node(std::uint32_t from, std::uint32_t to, const Amount& amount, CrossingSum& sum) const;
  void attach_nics();
  void attach_hosts();
  void number_devices();
  Seconds hop_latency(int switches) const;
  std::int64_t own_nic(std::uint32_t gpu) const;
  std::uint32_t bundle_of(std::uint32_t device) const;
  double share_left(LinkFault::Where where, std::int64_t index) const;
  double nic_share_left(std::int64_t nic) const;
  BytesPerSecond capacity_below_switches(std::uint32_t device) const;
  std::vector<Exit> exits(std::uint32_t gpu) const;
  void cross_pcie(std::uint32_t gpu, bool out, const Amount& amount, CrossingSum& sum) const;
  int cross_switches(std::int64_t from_nic, std::int64_t to_nic, const Amount& amount, CrossingSum& sum) const;
};

}  // namespace tandem::topology
