#include <algorithm>
#include <map>

#include "topology/cluster.h"

namespace tandem {
namespace {

/// How often each link is crossed; sorted, so that equal layouts are laid out equally.
class Crossings {
 public:
  void add(LinkId link, std::uint32_t times) { times_[link] += times; }
  void add(const PhysicalRing& way, std::uint32_t times) {
    for (const Crossing& crossing : way.crossings) add(crossing.link, times * crossing.multiplicity);
  }
  std::vector<Crossing> list() const {
    std::vector<Crossing> list;
    for (const auto& [link, times] : times_) {
      if (times > 0) list.push_back({link, times});
    }
    return list;
  }

 private:
  std::map<LinkId, std::uint32_t> times_;
};

}  // namespace

PhysicalRing Cluster::exchange(std::span<const std::uint32_t> members) const { return dispatch(members, 1, 1); }

PhysicalRing Cluster::dispatch(std::span<const std::uint32_t> members, std::uint32_t choices, std::uint32_t nodes) const {
  std::map<std::int64_t, std::uint32_t> in_node;
  for (const std::uint32_t gpu : members) ++in_node[node_of(gpu)];
  const std::uint32_t local = in_node.begin()->second;
  const bool equal = std::ranges::all_of(in_node, [&](const auto& node) { return node.second == local; });
  if (in_node.size() == 1 || !equal || nodes >= choices) choices = nodes = 1;  // every choice travels by itself
  nodes = std::min(nodes, static_cast<std::uint32_t>(in_node.size()));

  // A channel carries 1/choices of what one pair exchanges: whole numbers of them cross each link.
  PhysicalRing layout;
  layout.channels = static_cast<std::uint32_t>(members.size() - 1) * choices;
  layout.nodes = static_cast<std::uint32_t>(in_node.size());
  const bool relayed = choices > 1;
  Crossings crossings;
  for (std::size_t i = 0; i < members.size(); ++i) {
    for (std::size_t j = 0; j < members.size(); ++j) {
      const bool inside = node_of(members[i]) == node_of(members[j]);
      const bool same_place = i % local == j % local;
      if (i == j || (relayed && !inside && !same_place)) continue;
      const PhysicalRing way = pair(members[i], members[j]);
      layout.intra_latency = std::max(layout.intra_latency, way.intra_latency);
      layout.inter_latency = std::max(layout.inter_latency, way.inter_latency);
      if (!relayed) crossings.add(way, 1);
      if (relayed && !inside) crossings.add(way, local * nodes);
    }
    if (!relayed) continue;
    crossings.add(out_of(members[i]), layout.nodes * (local - 1) * choices);
    crossings.add(into(members[i]), layout.nodes * (local - 1) * choices);
  }
  layout.crossings = crossings.list();
  return layout;
}

}  // namespace tandem
