#include <algorithm>
#include <unordered_map>

#include "topology/layouts.h"
#include "topology/tree.h"

namespace tandem {
namespace {

using Node = std::vector<std::uint32_t>;

std::vector<Node> by_node(const Cluster& cluster, std::span<const std::uint32_t> members) {
  std::vector<Node> nodes;
  std::unordered_map<std::int64_t, std::size_t> known;
  std::int64_t last = -1;
  for (const std::uint32_t gpu : members) {
    const std::int64_t node = cluster.node_of(gpu);
    std::size_t place = nodes.size() - 1;
    if (node != last) place = known.try_emplace(node, nodes.size()).first->second;
    if (place == nodes.size()) nodes.emplace_back();
    nodes[place].push_back(gpu);
    last = node;
  }
  return nodes;
}

class Group {
 public:
  Group(const Cluster& cluster, std::span<const std::uint32_t> members)
      : cluster_(cluster), members_(members), nodes_(by_node(cluster, members)) {
    for (const Node& node : nodes_) equal_ = equal_ && node.size() == nodes_.front().size();
    layout_.nodes = static_cast<std::uint32_t>(nodes_.size());
    layout_.intra_latency = cluster.intra_latency();
  }

  Layout lay(GroupAlgorithms algorithms) && {
    layout_.paths = {nodes_.size() == 1 ? ring_in_node() : ring_over_nodes()};
    if (algorithms.tree && nodes_.size() > 1 && equal_) layout_.paths.push_back(trees());
    if (algorithms.nvls && nodes_.size() == 1 && cluster_.spec().nvls && members_.size() > 1) layout_.paths.push_back(nvls());
    for (Paths& paths : layout_.paths) paths.bandwidth = cluster_.bandwidth_below_switches(paths);
    return std::move(layout_);
  }

 private:
  const Cluster& cluster_;
  const std::span<const std::uint32_t> members_;
  const std::vector<Node> nodes_;
  bool equal_ = true;
  Layout layout_;

  void cross(std::uint32_t from, std::uint32_t to, std::uint32_t times, CrossingSum& sum) {
    layout_.inter_latency = std::max(layout_.inter_latency, cluster_.cross_fabric(from, to, times, sum));
  }

  Paths ring_in_node() const {
    CrossingSum sum;
    for (std::size_t i = 0; i < members_.size(); ++i)
      cluster_.cross_node(members_[i], members_[(i + 1) % members_.size()], 1, sum);
    return sum.paths(Algorithm::ring, 1);
  }

  /// Channel c enters and leaves each node through its c-th member and passes through all in between.
  Paths ring_over_nodes() {
    CrossingSum sum;
    const std::size_t channels = equal_ ? nodes_.front().size() : 1;
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      const Node& node = nodes_[n];
      const Node& next = nodes_[(n + 1) % nodes_.size()];
      // Over all channels each port sends and receives equally often: a channel makes node.size() - 1 hops inside the node.
      for (std::size_t i = 0; i < node.size(); ++i) {
        const std::uint32_t after = node[(i + 1) % node.size()];
        const auto hops = static_cast<std::uint32_t>(equal_ ? node.size() - 1 : (i + 1 < node.size() ? 1 : 0));
        if (hops > 0) cluster_.cross_node(node[i], after, hops, sum);
      }
      for (std::size_t c = 0; c < channels; ++c) cross(equal_ ? node[c] : node.back(), next[c], 1, sum);
    }
    return sum.paths(Algorithm::ring, static_cast<std::uint32_t>(channels));
  }

  Paths trees() {
    CrossingSum sum;
    const std::size_t rails = nodes_.front().size();
    const auto count = static_cast<std::uint32_t>(nodes_.size());
    // A rail's chain begins at its member and passes through the others in turn, up and down: over all rails and both trees each
    // port sends and receives in all but one of them.
    const auto hops = static_cast<std::uint32_t>(2 * 2 * (rails - 1));
    for (const Node& node : nodes_) {
      for (const std::uint32_t gpu : node) {
        if (hops > 0) cluster_.cross_node(gpu, gpu, hops, sum);
      }
    }
    for (const bool second : {false, true}) {
      const std::vector<std::uint32_t> parents = binary_tree(count, second);
      for (std::uint32_t n = 0; n < count; ++n) {
        const Node& node = nodes_[n];
        for (std::size_t c = 0; c < rails; ++c) {
          if (parents[n] == no_parent) continue;
          const std::uint32_t parent = nodes_[parents[n]][c];
          cross(node[c], parent, 1, sum);
          cross(parent, node[c], 1, sum);
        }
      }
    }
    return sum.paths(Algorithm::tree, static_cast<std::uint32_t>(2 * rails));
  }

  Paths nvls() const {
    CrossingSum sum;
    const auto units = static_cast<std::uint32_t>(members_.size() + 1);
    for (const std::uint32_t gpu : members_) cluster_.cross_node(gpu, gpu, units, sum);
    return sum.paths(Algorithm::nvls, static_cast<std::uint32_t>(members_.size()));
  }
};

}  // namespace

Layout lay_latency(const Cluster& cluster, std::span<const std::uint32_t> members) {
  const std::vector<Node> nodes = by_node(cluster, members);
  Layout layout{.nodes = static_cast<std::uint32_t>(nodes.size()), .intra_latency = cluster.intra_latency()};
  for (std::size_t n = 0; n < nodes.size() && nodes.size() > 1; ++n) {
    CrossingSum ignored;
    const Seconds hop = cluster.cross_fabric(nodes[n].front(), nodes[(n + 1) % nodes.size()].front(), 1, ignored);
    layout.inter_latency = std::max(layout.inter_latency, hop);
  }
  if (nodes.size() > 1) layout.paths.push_back({.algorithm = Algorithm::tree});
  return layout;
}

Layout lay_group(const Cluster& cluster, std::span<const std::uint32_t> members, GroupAlgorithms algorithms) {
  return Group(cluster, members).lay(algorithms);
}

}  // namespace tandem
