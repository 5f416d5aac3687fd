#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "topology/crossing_sum.h"
#include "topology/layouts.h"

namespace tandem::topology {
namespace {

/// How many channels' bytes each link carries.
struct Multiples {
  std::uint32_t to_node = 1;   ///< from a GPU to each other node
  std::uint32_t in_node = 0;   ///< through a port
  std::uint32_t channels = 1;  ///< in all rows that a member sends
};

Multiples multiples_of(const TokenCopies& copies, double nodes, double local) {
  constexpr std::uint32_t most = 16;
  constexpr double good = 0.01;
  const double of_port = copies.ranks * (local - 1) / local;
  Multiples best;
  double least = std::numeric_limits<double>::infinity();
  for (std::uint32_t unit = 1; unit <= most && least > good; ++unit) {
    // A channel is sized by what a NIC sends to one node or, inside one node, by what a port carries.
    const double part = nodes > 1 ? copies.nodes / nodes / unit : of_port / unit;
    const double in_node = of_port / part, channels = copies.choices * (nodes * local - 1) / (nodes * local) / part;
    const auto error = [](double exact) { return std::abs(std::max(1.0, std::round(exact)) / exact - 1); };
    const double worst = std::max(local > 1 ? error(in_node) : 0, error(channels));
    if (worst >= least) continue;
    least = worst;
    best = {unit, local > 1 ? static_cast<std::uint32_t>(std::max(1L, std::lround(in_node))) : 0,
            static_cast<std::uint32_t>(std::max(1L, std::lround(channels)))};
  }
  return best;
}

}  // namespace

Layout lay_token_dispatch(const Cluster& cluster, std::span<const std::uint32_t> members, const TokenCopies& copies,
                          Algorithm kernels) {
  std::vector<std::pair<std::int64_t, std::vector<std::uint32_t>>> nodes;  // in the order in which they first appear
  for (const std::uint32_t gpu : members) {
    const std::int64_t node = cluster.node_of(gpu);
    auto found = std::ranges::find(nodes, node, &std::pair<std::int64_t, std::vector<std::uint32_t>>::first);
    if (found == nodes.end()) found = nodes.insert(nodes.end(), {node, {}});
    found->second.push_back(gpu);
  }
  const std::size_t local = nodes.front().second.size();
  if (std::ranges::any_of(nodes, [&](const auto& node) { return node.second.size() != local; }))
    return lay_exchange(cluster, members);

  const Multiples times = multiples_of(copies, static_cast<double>(nodes.size()), static_cast<double>(local));
  Layout layout{.nodes = static_cast<std::uint32_t>(nodes.size()), .intra_latency = cluster.intra_latency()};
  CrossingSum sum;
  for (const std::uint32_t from : members) {
    for (const auto& [node, gpus] : nodes) {
      if (node == cluster.node_of(from)) {
        if (times.in_node > 0) cluster.cross_evenly(from, gpus, times.in_node, sum);
        continue;
      }
      const std::uint32_t entry = cluster.on_rail_of(gpus.front(), from);
      layout.inter_latency = std::max(layout.inter_latency, cluster.cross_fabric(from, entry, times.to_node, sum));
    }
  }
  layout.paths = {sum.paths(kernels, times.channels)};
  cluster.find_rates(layout.paths.front());
  return layout;
}

}  // namespace tandem::topology
