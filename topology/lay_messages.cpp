#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "topology/hop_list.h"
#include "topology/layouts.h"

namespace tandem::topology {
namespace {

/// Adds a message between any two GPUs. With `over_rails` it first goes to the GPU on the receiver's rail.
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

/// Adds one of the layout's hops; `entry` is the GPU of the receiver's node at which its message arrives first.
void add_hop(const Cluster& cluster, std::uint32_t from, std::uint32_t to, std::uint32_t entry, Amount amount, bool over_rails,
             HopList& hops) {
  const bool between_nodes = cluster.node_of(from) != cluster.node_of(to);
  hops.add({.from = from, .to = to, .between_nodes = between_nodes, .parts = amount.parts}, [&](CrossingSum& sum) {
    Layout latencies;
    send(cluster, from, entry, amount.times, over_rails, latencies, sum);
  });
}

}  // namespace

Layout lay_pair(const Cluster& cluster, std::uint32_t source, std::uint32_t destination, Detail detail) {
  Layout layout;
  CrossingSum sum;
  const std::array members{source, destination};
  HopList hops(members, detail);
  add_hop(cluster, source, destination, destination, {}, false, hops);
  layout.nodes = cluster.node_of(source) == cluster.node_of(destination) ? 1 : 2;
  send(cluster, source, destination, 1, false, layout, sum);
  layout.paths = {sum.paths(Algorithm::direct, 1)};
  cluster.find_rates(layout.paths.front());
  layout.paths.front().hops = std::move(hops).take();
  return layout;
}

Layout lay_exchange(const Cluster& cluster, std::span<const std::uint32_t> members, Detail detail) {
  return lay_dispatch(cluster, members, 1, 1, detail);
}

Layout lay_dispatch(const Cluster& cluster, std::span<const std::uint32_t> members, std::uint32_t choices, std::uint32_t nodes,
                    Detail detail) {
  std::map<std::int64_t, std::vector<std::uint32_t>> in_node;
  for (const std::uint32_t gpu : members) in_node[cluster.node_of(gpu)].push_back(gpu);
  const std::size_t local = in_node.begin()->second.size();
  const bool equal = std::ranges::all_of(in_node, [&](const auto& node) { return node.second.size() == local; });
  if (in_node.size() == 1 || !equal || nodes >= choices) choices = nodes = 1;  // every choice travels by itself
  nodes = std::min(nodes, static_cast<std::uint32_t>(in_node.size()));

  // A channel carries 1 / choices of what one pair exchanges, so that whole numbers of channels cross each link.
  Layout layout;
  layout.nodes = static_cast<std::uint32_t>(in_node.size());
  CrossingSum sum;
  HopList hops(members, detail);
  for (const std::uint32_t from : members) {
    for (const std::uint32_t to : members) {
      if (from == to) continue;
      if (choices == 1) {
        send(cluster, from, to, 1, true, layout, sum);
        add_hop(cluster, from, to, to, {}, true, hops);
      } else if (cluster.node_of(from) != cluster.node_of(to)) {
        const std::uint32_t entry = cluster.on_rail_of(to, from);
        send(cluster, from, entry, nodes, false, layout, sum);
        add_hop(cluster, from, to, entry, {nodes, choices}, false, hops);
      }
    }
    if (choices > 1 && local > 1) {
      layout.intra_latency = cluster.intra_latency();
      const std::uint32_t passed_on = layout.nodes * static_cast<std::uint32_t>(local - 1) * choices;
      const auto pass_on = [&](CrossingSum& to) { cluster.cross_evenly(from, in_node[cluster.node_of(from)], passed_on, to); };
      pass_on(sum);
      hops.add({.from = from, .to = from, .parts = choices}, pass_on);
    }
  }
  layout.paths = {sum.paths(Algorithm::direct, static_cast<std::uint32_t>(members.size() - 1) * choices)};
  cluster.find_rates(layout.paths.front());
  layout.paths.front().hops = std::move(hops).take();
  return layout;
}

}  // namespace tandem::topology
