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

  nvlink_ = spec.nvlink_GBps * giga * spec.nvlink_efficiency;
  const BytesPerSecond port = spec.nic_gbps * giga / bits_per_byte * spec.nic_efficiency;
  nic_ = port / oversubscription(0);
  leaf_ = port * static_cast<double>(fabric.leaf_ports) / oversubscription(1);
  pod_ = leaf_ * static_cast<double>(fabric.pod_leaves) / oversubscription(2);
  first_nic_ = static_cast<std::uint32_t>(spec.gpus);
  first_leaf_ = first_nic_ + static_cast<std::uint32_t>(nics);
  first_pod_ = first_leaf_ + static_cast<std::uint32_t>(leaves_);
}

Link Cluster::link(LinkId id) const {
  const std::uint32_t device = id / 2;
  const std::string direction = id % 2 == 0 ? " out" : " in";
  const auto named = [&](const char* name, std::uint32_t first, Tier tier, BytesPerSecond capacity) {
    return Link{name + std::to_string(device - first) + direction, tier, capacity, 1};
  };
  if (device < first_nic_) return named("gpu", 0, Tier::nvlink, nvlink_);
  if (device < first_leaf_) return named("nic", first_nic_, Tier::nic, nic_);
  if (device < first_pod_) return named("leaf", first_leaf_, Tier::leaf, leaf_);
  return named("pod", first_pod_, Tier::spine, pod_);
}

std::vector<Link> Cluster::links() const {
  std::vector<Link> links;
  for (LinkId id = 0; id < link_count(); ++id) links.push_back(link(id));
  return links;
}

Attachment Cluster::attachment(std::uint32_t gpu) const {
  Attachment attachment{.node = static_cast<std::uint32_t>(node_of(gpu)), .devices = {gpu, no_device, no_device, no_device}};
  if (rails_ == 0) return attachment;
  const std::int64_t nic = nic_of(gpu);
  const std::int64_t leaf = leaf_of(nic);
  attachment.devices[1] = first_nic_ + static_cast<std::uint32_t>(nic);
  attachment.devices[2] = first_leaf_ + static_cast<std::uint32_t>(leaf);
  if (pods_ > 0) attachment.devices[3] = first_pod_ + static_cast<std::uint32_t>(pod_of(leaf));
  return attachment;
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
  const auto out = [&](std::uint32_t first, std::int64_t index) { crossings.push_back({out_of(first + index), 1}); };
  const auto in = [&](std::uint32_t first, std::int64_t index) { crossings.push_back({into(first + index), 1}); };
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
    way.crossings = {{out_of(source), 1}, {into(destination), 1}};
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
      ring.crossings.push_back({out_of(gpu), 1});
      ring.crossings.push_back({into(gpu), 1});
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
      if (hops > 0) ring.crossings.push_back({out_of(gpu), hops});
      if (arrivals > 0) ring.crossings.push_back({into(gpu), arrivals});
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
