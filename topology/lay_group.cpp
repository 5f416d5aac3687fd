#include <algorithm>
#include <unordered_map>
#include <vector>

#include "topology/hop_list.h"
#include "topology/layouts.h"
#include "topology/tree.h"

namespace tandem::topology {
namespace {

using NodeMembers = std::span<const std::uint32_t>;

/// Cuts members where one is on another node than the one before.
std::vector<NodeMembers> runs_of_nodes(const Cluster& cluster, std::span<const std::uint32_t> members) {
  std::vector<NodeMembers> runs;
  std::int64_t last = -1;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::int64_t node = cluster.node_of(members[i]);
    if (node != last && i > 0) {
      runs.push_back(members.subspan(begin, i - begin));
      begin = i;
    }
    last = node;
  }
  runs.push_back(members.subspan(begin));
  return runs;
}

/// Returns the members of each node, nodes in the order in which they first appear. Where that is not the order of the members,
/// they are copied to `copies`.
std::vector<NodeMembers> by_node(const Cluster& cluster, std::span<const std::uint32_t> members,
                                 std::vector<std::uint32_t>& copies) {
  std::vector<NodeMembers> runs = runs_of_nodes(cluster, members);
  if (std::ranges::is_sorted(members)) return runs;
  std::unordered_map<std::int64_t, std::size_t> place;
  for (const NodeMembers& run : runs) place.try_emplace(cluster.node_of(run.front()), place.size());
  if (place.size() == runs.size()) return runs;
  copies.assign(members.begin(), members.end());
  std::ranges::stable_sort(copies, {}, [&](std::uint32_t gpu) { return place.at(cluster.node_of(gpu)); });
  return runs_of_nodes(cluster, copies);
}

class Group {
 public:
  Group(const Cluster& cluster, std::span<const std::uint32_t> members, Detail detail)
      : cluster_(cluster), members_(members), detail_(detail), nodes_(by_node(cluster, members, copies_)) {
    for (const NodeMembers& node : nodes_) equal_ = equal_ && node.size() == nodes_.front().size();
    layout_.nodes = static_cast<std::uint32_t>(nodes_.size());
    layout_.intra_latency = cluster.intra_latency();
  }

  Layout lay(GroupAlgorithms algorithms) && {
    layout_.paths = {nodes_.size() == 1 ? ring_in_node() : ring_over_nodes()};
    if (algorithms.tree && nodes_.size() > 1 && equal_) layout_.paths.push_back(trees());
    if (algorithms.nvls && cluster_.spec().nvls) {
      constexpr std::size_t least = 3;  // of a node's GPUs, for NCCL to use NVLS over several
      if (nodes_.size() == 1 && members_.size() > 1) layout_.paths.push_back(nvls());
      if (nodes_.size() > 1 && equal_ && nodes_.front().size() >= least) layout_.paths.push_back(nvls_trees());
    }
    for (Paths& paths : layout_.paths) cluster_.find_rates(paths);
    return std::move(layout_);
  }

 private:
  const Cluster& cluster_;
  const std::span<const std::uint32_t> members_;
  const Detail detail_;
  std::vector<std::uint32_t> copies_;
  const std::vector<NodeMembers> nodes_;
  bool equal_ = true;
  Layout layout_;

  void cross(std::uint32_t from, std::uint32_t to, std::uint32_t times, CrossingSum& sum) {
    layout_.inter_latency = std::max(layout_.inter_latency, cluster_.cross_fabric(from, to, times, sum));
  }

  void add_in_node(std::uint32_t from, std::uint32_t to, std::size_t channel, bool down, HopList& hops) const {
    hops.add({.from = from, .to = to, .channel = static_cast<std::uint32_t>(channel), .down = down},
             [&](CrossingSum& sum) { cluster_.cross_node(from, to, 1, sum); });
  }

  /// Adds a hop from GPU to GPU that leaves by the NIC of `exit` and arrives at that of `entry`, GPUs of the same two nodes.
  void add_over(std::uint32_t exit, std::uint32_t entry, Hop hop, HopList& hops) const {
    hop.between_nodes = true;
    hops.add(hop, [&](CrossingSum& sum) { cluster_.cross_fabric(exit, entry, 1, sum); });
  }

  static Paths finish(const CrossingSum& sum, Algorithm algorithm, std::size_t channels, HopList hops) {
    Paths paths = sum.paths(algorithm, static_cast<std::uint32_t>(channels));
    paths.hops = std::move(hops).take();
    return paths;
  }

  Paths ring_in_node() const {
    CrossingSum sum;
    HopList hops(members_, detail_);
    for (std::size_t i = 0; i < members_.size(); ++i) {
      cluster_.cross_evenly(members_[i], members_, 1, sum);
      add_in_node(members_[i], members_[(i + 1) % members_.size()], 0, false, hops);
    }
    return finish(sum, Algorithm::ring, 1, std::move(hops));
  }

  /// Channel c enters and leaves each node through its c-th member, and passes through all others in between.
  Paths ring_over_nodes() {
    CrossingSum sum;
    constexpr std::size_t links_per_member = 8;  // its port, its NIC, and up to four in the fabric
    sum.reserve(links_per_member * members_.size());
    const std::size_t channels = equal_ ? nodes_.front().size() : 1;
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      const NodeMembers& node = nodes_[n];
      const NodeMembers& next = nodes_[(n + 1) % nodes_.size()];
      // Over all channels each GPU sends and receives equally often: a channel makes node.size() - 1 hops inside the node.
      for (std::size_t i = 0; i < node.size() && node.size() > 1; ++i) {
        if (equal_)
          cluster_.cross_evenly(node[i], node, static_cast<std::uint32_t>(node.size() - 1), sum);
        else if (i + 1 < node.size())
          cluster_.cross_node(node[i], node[i + 1], 1, sum);
      }
      for (std::size_t c = 0; c < channels; ++c) cross(equal_ ? node[c] : node.back(), next[c], 1, sum);
    }
    return finish(sum, Algorithm::ring, channels, ring_hops(channels));
  }

  /// Channel c starts at a node's c-th member, visits every member, and goes on to the next node over the c-th member's rail.
  HopList ring_hops(std::size_t channels) const {
    HopList hops(members_, detail_);
    for (std::size_t c = 0; hops.wanted() && c < channels; ++c) {
      for (std::size_t n = 0; n < nodes_.size(); ++n) {
        const NodeMembers& node = nodes_[n];
        const NodeMembers& next = nodes_[(n + 1) % nodes_.size()];
        for (std::size_t i = 0; i + 1 < node.size(); ++i)
          add_in_node(node[(c + i) % node.size()], node[(c + i + 1) % node.size()], c, false, hops);
        const std::uint32_t last = node[(c + node.size() - 1) % node.size()];
        add_over(equal_ ? node[c] : last, next[c], {.from = last, .to = next[c], .channel = static_cast<std::uint32_t>(c)}, hops);
      }
    }
    return hops;
  }

  Paths trees() {
    CrossingSum sum;
    HopList hops(members_, detail_);
    const std::size_t rails = nodes_.front().size();
    // A rail's chain begins at the rail's member and passes through the others in turn, up and down. Over all rails and both
    // trees a GPU sends in all chains but one, and receives in all but one.
    const auto in_chains = static_cast<std::uint32_t>(2 * 2 * (rails - 1));
    for (const NodeMembers& node : nodes_)
      for (const std::uint32_t gpu : node)
        if (in_chains > 0) cluster_.cross_evenly(gpu, node, in_chains, sum);
    for (std::size_t channel = 0; hops.wanted() && channel < 2 * rails; ++channel) {
      for (const NodeMembers& node : nodes_) {
        for (std::size_t i = 0; i + 1 < rails; ++i) {
          const std::uint32_t upper = node[(channel + i) % rails], lower = node[(channel + i + 1) % rails];
          add_in_node(lower, upper, channel, false, hops);
          add_in_node(upper, lower, channel, true, hops);
        }
      }
    }
    for_each_branch([&](std::uint32_t child, std::uint32_t parent, std::size_t channel) {
      cross(child, parent, 1, sum);
      cross(parent, child, 1, sum);
      const auto number = static_cast<std::uint32_t>(channel);
      add_over(child, parent, {.from = child, .to = parent, .channel = number}, hops);
      add_over(parent, child, {.from = parent, .to = child, .channel = number, .down = true}, hops);
    });
    return finish(sum, Algorithm::tree, 2 * rails, std::move(hops));
  }

  /// Visits the trees' branches between the GPUs of a rail: channel c < rails is the first tree on rail c, c + rails the second.
  template <typename Visit>
  void for_each_branch(const Visit& visit) const {
    const auto count = static_cast<std::uint32_t>(nodes_.size());
    const std::size_t rails = nodes_.front().size();
    for (const bool second : {false, true}) {
      const std::vector<std::uint32_t> parents = binary_tree(count, second);
      for (std::uint32_t n = 0; n < count; ++n) {
        for (std::size_t c = 0; parents[n] != no_parent && c < rails; ++c)
          visit(nodes_[n][c], nodes_[parents[n]][c], c + (second ? rails : 0));
      }
    }
  }

  Paths nvls_trees() {
    CrossingSum sum;
    const std::size_t rails = nodes_.front().size();
    const auto units = static_cast<std::uint32_t>(2 * (rails + 1));
    for (const std::uint32_t gpu : members_) cluster_.cross_evenly(gpu, members_, units, sum);
    for_each_branch([&](std::uint32_t child, std::uint32_t parent, std::size_t) {
      cross(child, parent, 1, sum);
      cross(parent, child, 1, sum);
    });
    return sum.paths(Algorithm::nvls_tree, static_cast<std::uint32_t>(2 * rails));
  }

  Paths nvls() const {
    CrossingSum sum;
    const auto units = static_cast<std::uint32_t>(members_.size() + 1);
    for (const std::uint32_t gpu : members_) cluster_.cross_evenly(gpu, members_, units, sum);
    return sum.paths(Algorithm::nvls, static_cast<std::uint32_t>(members_.size()));
  }
};

}  // namespace

Layout lay_latency(const Cluster& cluster, std::span<const std::uint32_t> members) {
  std::vector<std::uint32_t> copies;
  const std::vector<NodeMembers> nodes = by_node(cluster, members, copies);
  Layout layout{.nodes = static_cast<std::uint32_t>(nodes.size()), .intra_latency = cluster.intra_latency()};
  CrossingSum ignored;
  for (std::size_t n = 0; n < nodes.size() && nodes.size() > 1; ++n) {
    const Seconds hop = cluster.cross_fabric(nodes[n].front(), nodes[(n + 1) % nodes.size()].front(), 1, ignored);
    layout.inter_latency = std::max(layout.inter_latency, hop);
  }
  if (nodes.size() > 1) layout.paths.push_back({.algorithm = Algorithm::tree});
  return layout;
}

Layout lay_host_copy(const Cluster& cluster, std::uint32_t gpu, bool out) {
  CrossingSum sum;
  cluster.cross_to_host(gpu, out, sum);
  Layout layout{.nodes = 1, .intra_latency = cluster.host_latency(), .paths = {sum.paths(Algorithm::direct, 1)}};
  cluster.find_rates(layout.paths.front());
  return layout;
}

Layout lay_group(const Cluster& cluster, std::span<const std::uint32_t> members, GroupAlgorithms algorithms, Detail detail) {
  return Group(cluster, members, detail).lay(algorithms);
}

}  // namespace tandem::topology
