#include <algorithm>
#include <map>

#include "topology/layouts.h"

namespace tandem {
namespace {

/// One message between any two GPUs. With `over_rails`, first to the GPU on the receiver's rail.
void send(const Cluster& cluster, std::uint32_t from, std::uint32_t to, std::uint32_t times, bool over_rails, Layout& layout,
          CrossingSum& sum) {
  if (cluster.node_of(from) == cluster.node_of(to)) {
    layout.intra_latency = cluster.intra_latency();
    cluster.cross_node(from, to, times, sum);
    return;
  }
  const std::uint32_t via = over_rails ? cluster.on_rail_of(from, to) : from;
  if (via != from) cluster.cross_node(from, via, times, sum);
  layout.inter_latency = std::max(layout.inter_latency, cluster.cross_fabric(via, to, times, sum));
}

}  // namespace

Layout lay_pair(const Cluster& cluster, std::uint32_t source, std::uint32_t destination) {
  Layout layout;
  CrossingSum sum;
  layout.nodes = cluster.node_of(source) == cluster.node_of(destination) ? 1 : 2;
  send(cluster, source, destination, 1, false, layout, sum);
  layout.paths = {sum.paths(Algorithm::direct, 1)};
  return layout;
}

Layout lay_exchange(const Cluster& cluster, std::span<const std::uint32_t> members) {
  return lay_dispatch(cluster, members, 1, 1);
}

Layout lay_dispatch(const Cluster& cluster, std::span<const std::uint32_t> members, std::uint32_t choices, std::uint32_t nodes) {
  std::map<std::int64_t, std::uint32_t> in_node;
  for (const std::uint32_t gpu : members) ++in_node[cluster.node_of(gpu)];
  const std::uint32_t local = in_node.begin()->second;
  const bool equal = std::ranges::all_of(in_node, [&](const auto& node) { return node.second == local; });
  if (in_node.size() == 1 || !equal || nodes >= choices) choices = nodes = 1;  // every choice travels by itself
  nodes = std::min(nodes, static_cast<std::uint32_t>(in_node.size()));

  // A channel carries 1/choices of what one pair exchanges: whole numbers of them cross each link.
  Layout layout;
  layout.nodes = static_cast<std::uint32_t>(in_node.size());
  CrossingSum sum;
  for (const std::uint32_t from : members) {
    for (const std::uint32_t to : members) {
      if (from == to) continue;
      if (choices == 1) {
        send(cluster, from, to, 1, true, layout, sum);
      } else if (cluster.node_of(from) != cluster.node_of(to)) {
        send(cluster, from, cluster.on_rail_of(to, from), nodes, false, layout, sum);
      }
    }
    if (choices > 1 && local > 1) {
      layout.intra_latency = cluster.intra_latency();
      cluster.cross_node(from, from, layout.nodes * (local - 1) * choices, sum);
    }
  }
  layout.paths = {sum.paths(Algorithm::direct, static_cast<std::uint32_t>(members.size() - 1) * choices)};
  return layout;
}

}  // namespace tandem
