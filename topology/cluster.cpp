#include "topology/cluster.h"

#include <algorithm>

namespace tandem {
namespace {

constexpr double micro = 1e-6;
constexpr double giga = 1e9;
constexpr double bits_per_byte = 8;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

Cluster::Cluster(const ClusterSpec& spec) : spec_(spec) {
  nodes_ = divide_up(spec.gpus, spec.gpus_per_node);
  rails_ = spec.nics_per_node;
  const FabricSpec& fabric = spec.fabric;
  const std::int64_t nics = nodes_ * rails_;
  leaves_ = fabric.rail_optimized ? divide_up(nodes_, fabric.leaf_ports) * rails_ : divide_up(nics, fabric.leaf_ports);
  pods_ = fabric.tiers >= 3 ? divide_up(leaves_, fabric.pod_leaves) : 0;
  const auto oversubscription = [&](std::size_t tier) {
    return tier < fabric.oversubscription.size() ? fabric.oversubscription[tier] : 1.0;
  };

  const BytesPerSecond nvlink = spec.nvlink_GBps * giga * spec.nvlink_efficiency;
  const BytesPerSecond nic = spec.nic_gbps * giga / bits_per_byte * spec.nic_efficiency;
  const BytesPerSecond leaf = nic * static_cast<double>(fabric.leaf_ports) / oversubscription(1);
  const BytesPerSecond pod = leaf * static_cast<double>(fabric.pod_leaves) / oversubscription(2);
  links_.reserve(static_cast<std::size_t>(2 * (spec.gpus + nics + leaves_ + pods_)));
  for (std::int64_t i = 0; i < spec.gpus; ++i) add_pair(Tier::nvlink, "gpu", i, nvlink);
  first_nic_ = static_cast<LinkId>(links_.size());
  for (std::int64_t i = 0; i < nics; ++i) add_pair(Tier::nic, "nic", i, nic / oversubscription(0));
  first_leaf_ = static_cast<LinkId>(links_.size());
  for (std::int64_t i = 0; i < leaves_; ++i) add_pair(Tier::leaf, "leaf", i, leaf);
  first_pod_ = static_cast<LinkId>(links_.size());
  for (std::int64_t i = 0; i < pods_; ++i) add_pair(Tier::spine, "pod", i, pod);
}

void Cluster::add_pair(Tier tier, const char* name, std::int64_t index, BytesPerSecond capacity) {
  // Short names, so that no string of a large cluster is on the heap.
  const std::string base = name + std::to_string(index);
  links_.push_back({base + " out", tier, capacity, 1});
  links_.push_back({base + " in", tier, capacity, 1});
}

std::int64_t Cluster::nic_of(std::uint32_t gpu) const {
  const std::int64_t local = gpu % spec_.gpus_per_node;
  return node_of(gpu) * rails_ + local * rails_ / spec_.gpus_per_node;
}

std::int64_t Cluster::leaf_of(std::int64_t nic) const {
  const FabricSpec& fabric = spec_.fabric;
  if (!fabric.rail_optimized) return nic / fabric.leaf_ports;
  return nic / rails_ / fabric.leaf_ports * rails_ + nic % rails_;
}

Seconds Cluster::cross_fabric(std::int64_t from_nic, std::int64_t to_nic, std::vector<Crossing>& crossings) const {
  const auto out = [&](LinkId first, std::int64_t index) { crossings.push_back({first + 2 * static_cast<LinkId>(index), 1}); };
  const auto in = [&](LinkId first, std::int64_t index) { crossings.push_back({first + 2 * static_cast<LinkId>(index) + 1, 1}); };
  const std::int64_t from_leaf = leaf_of(from_nic);
  const std::int64_t to_leaf = leaf_of(to_nic);
  int switches = 1;
  out(first_nic_, from_nic);
  if (from_leaf != to_leaf) {
    switches = 3;
    out(first_leaf_, from_leaf);
    if (pods_ > 0 && pod_of(from_leaf) != pod_of(to_leaf)) {
      switches = 5;
      out(first_pod_, pod_of(from_leaf));
      in(first_pod_, pod_of(to_leaf));
    }
    in(first_leaf_, to_leaf);
  }
  in(first_nic_, to_nic);
  return (spec_.nic_latency_us + switches * spec_.switch_latency_us) * micro;
}

PhysicalRing Cluster::pair(std::uint32_t source, std::uint32_t destination) const {
  PhysicalRing way;
  if (node_of(source) == node_of(destination)) {
    way.intra_latency = spec_.nvlink_latency_us * micro;
    way.crossings = {{gpu_out(source), 1}, {gpu_in(destination), 1}};
  } else {
    way.nodes = 2;
    way.inter_latency = cross_fabric(nic_of(source), nic_of(destination), way.crossings);
  }
  return way;
}

PhysicalRing Cluster::ring(std::span<const std::uint32_t> members) const {
  PhysicalRing ring;
  ring.intra_latency = spec_.nvlink_latency_us * micro;
  std::vector<std::size_t> first_of_node{0};
  for (std::size_t i = 1; i < members.size(); ++i) {
    if (node_of(members[i]) != node_of(members[i - 1])) first_of_node.push_back(i);
  }
  const std::size_t nodes = first_of_node.size();
  first_of_node.push_back(members.size());
  ring.nodes = static_cast<std::uint32_t>(nodes);
  if (nodes == 1) {
    for (const std::uint32_t gpu : members) {
      ring.crossings.push_back({gpu_out(gpu), 1});
      ring.crossings.push_back({gpu_in(gpu), 1});
    }
    return ring;
  }

  const std::size_t per_node = first_of_node[1];
  bool equal = true;
  for (std::size_t n = 0; n < nodes; ++n) equal = equal && first_of_node[n + 1] - first_of_node[n] == per_node;
  const std::size_t channels = equal ? per_node : 1;
  ring.channels = static_cast<std::uint32_t>(channels);
  for (std::size_t n = 0; n < nodes; ++n) {
    const std::size_t local = first_of_node[n + 1] - first_of_node[n];
    for (std::size_t i = 0; i < local; ++i) {
      const std::uint32_t gpu = members[first_of_node[n] + i];
      // A channel makes local - 1 hops inside the node; over all channels each port sends and receives equally often.
      const auto hops = static_cast<std::uint32_t>(equal ? local - 1 : (i + 1 < local ? 1 : 0));
      const auto arrivals = static_cast<std::uint32_t>(equal ? local - 1 : (i > 0 ? 1 : 0));
      if (hops > 0) ring.crossings.push_back({gpu_out(gpu), hops});
      if (arrivals > 0) ring.crossings.push_back({gpu_in(gpu), arrivals});
    }
    const std::size_t next = (n + 1) % nodes;
    for (std::size_t c = 0; c < channels; ++c) {
      const std::size_t sender = equal ? first_of_node[n] + c : first_of_node[n + 1] - 1;
      const Seconds hop = cross_fabric(nic_of(members[sender]), nic_of(members[first_of_node[next] + c]), ring.crossings);
      ring.inter_latency = std::max(ring.inter_latency, hop);
    }
  }
  return ring;
}

}  // namespace tandem
