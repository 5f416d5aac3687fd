#include "sim/ring_latency.h"

#include <algorithm>

#include "sim/node_ring.h"

namespace tandem::sim {

std::uint32_t hops_between_nodes(std::uint32_t passes, std::uint32_t members, std::uint32_t nodes) {
  return nodes == 1 ? 0 : passes * nodes - passes / (members / nodes);
}

Seconds ring_latency(std::uint32_t passes, std::uint32_t members, const Layout& layout, const CollectiveCost& cost) {
  const Paths& paths = layout.paths[cost.paths];
  const std::uint32_t hops = passes * (members - 1), between = hops_between_nodes(passes, members, layout.nodes);
  const std::uint32_t inside = hops - between;
  const auto transfer = [&](BytesPerSecond rate) {
    if (cost.rate_limit > 0 && (rate == 0 || cost.rate_limit < rate)) rate = cost.rate_limit;
    return rate == 0 ? 0.0 : static_cast<double>(cost.bytes_per_channel) / hops / rate;
  };
  const Seconds over_nodes = transfer(paths.between_nodes), slowest = hops * transfer(paths.slowest);
  const bool slow_inside = between == 0 || (inside > 0 && paths.slowest == paths.in_node);
  const Seconds in_place = slowest + (slow_inside ? cost.intra_latency : cost.inter_latency);

  Seconds round = 0;
  if (paths.channels > 1 && paths.in_node > 0 && paths.channels * layout.nodes == members) {
    const BytesPerSecond port = paths.in_node * (paths.channels - 1);
    round = play_node_ring({.hops = paths.channels,
                            .messages = hops,
                            .over_nodes = over_nodes,
                            .alone = static_cast<double>(cost.bytes_per_channel) / hops / port,
                            .least = transfer(port),
                            .intra_latency = cost.intra_latency,
                            .inter_latency = cost.inter_latency});
  } else {
    round = between * (over_nodes + cost.inter_latency) + inside * (transfer(paths.in_node) + cost.intra_latency);
  }
  // The hops between nodes that the longest chain leaves out are the fastest, which stay below the switches.
  if (between > 0) round += (passes * layout.nodes - between) * (over_nodes - transfer(paths.bandwidth));
  // Where the slowest hop between nodes takes longer than hops inside a node, the chain waits at that hop before it goes round.
  if (between > 0 && inside > 0) round += std::max(0.0, transfer(paths.slowest) - over_nodes);
  return cost.start + std::max(round, in_place) - slowest;
}

}  // namespace tandem::sim
