#include "sim/collective_cost.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

#include "sim/nccl_choice.h"
#include "sim/scaled_up.h"

namespace tandem {
namespace {

// Without an architecture whose constants NCCL has: its latency model under the Simple protocol throughout (NVIDIA/nccl,
// src/graph/tuning.cc, ncclTopoTuneModel()). The latency of a hop (hwLatencies) is the layout's.
constexpr Seconds base_latency = 8.4e-6;  // baseLatencies[NCCL_ALGO_RING and NCCL_ALGO_TREE][NCCL_PROTO_SIMPLE]

/// `passes` times round the ring (all-reduce 2, all-gather and reduce-scatter 1), but for the last hop.
Seconds ring_latency(std::int64_t passes, std::int64_t members, const Layout& layout) {
  const std::int64_t steps = passes * (members - 1);
  const std::int64_t inter_node_steps = passes * (std::int64_t{layout.nodes} - 1);
  return base_latency + static_cast<double>(steps - inter_node_steps) * layout.intra_latency +
         static_cast<double>(inter_node_steps) * layout.inter_latency;
}

/// Up and down: a chain inside each node, a binary tree over the nodes.
Seconds tree_latency(std::int64_t members, const Layout& layout) {
  const auto levels = static_cast<double>(std::bit_width(layout.nodes) - 1);
  const std::int64_t chain = members / layout.nodes - 1;
  return base_latency + 2 * (static_cast<double>(chain) * layout.intra_latency + levels * layout.inter_latency);
}

}  // namespace

CollectiveCost collective_cost(OpKind kind, Bytes bytes, std::size_t members, const Layout& layout, Architecture architecture) {
  const auto n = static_cast<std::int64_t>(members);
  if (n < 1 || layout.nodes < 1 || layout.paths.empty() || layout.paths.front().channels < 1)
    throw std::logic_error("a communicator without members, channels or nodes");
  if (n == 1) return {};
  const bool tuned = architecture != Architecture::unknown;
  const std::int64_t channels = layout.paths.front().channels;
  const Seconds hop = layout.nodes == 1 ? layout.intra_latency : layout.inter_latency;
  switch (kind) {
    case OpKind::all_reduce:
      if (tuned) return nccl_choice(kind, bytes, members, layout, architecture);
      return {std::min(ring_latency(2, n, layout), tree_latency(n, layout)), scaled_up(bytes, 2 * (n - 1), n * channels)};
    case OpKind::all_gather:
    case OpKind::reduce_scatter:
      if (tuned) return nccl_choice(kind, bytes, members, layout, architecture);
      return {ring_latency(1, n, layout), scaled_up(bytes, n - 1, n * channels)};
    case OpKind::barrier:
      return collective_cost(OpKind::all_reduce, 0, members, layout, architecture);
    case OpKind::broadcast:
    case OpKind::reduce:
      // A chain from member to member, pipelined: all of the vector over every hop. The ring's hop back to the root counts too.
      return {ring_latency(1, n, layout), scaled_up(bytes, 1, channels)};
    case OpKind::gather:
    case OpKind::scatter:
      // Messages between the root and every other, all at once: the root's port carries all but its own part. The ports of the
      // others are charged as much, which is too much where other traffic needs them.
    case OpKind::all_to_all:
      // Pairwise messages, all under way at once: the latency of one, the bytes of all but a member's own.
      return {hop, scaled_up(bytes, n - 1, n * channels)};
    case OpKind::send:
    case OpKind::receive:
      return {hop, scaled_up(bytes, 1, channels)};
    default:
      throw std::logic_error("not a collective: " + std::string(operation(kind).name));
  }
}

Seconds uncontended_time(const CollectiveCost& cost, const Layout& layout, const std::vector<Link>& links) {
  Seconds transfer = 0;
  for (const Crossing& crossing : layout.paths[cost.paths].crossings) {
    const double carried = static_cast<double>(cost.bytes_per_channel) * crossing.multiplicity;
    transfer = std::max(transfer, carried / links[crossing.link].capacity);
  }
  if (cost.rate_limit > 0) transfer = std::max(transfer, static_cast<double>(cost.bytes_per_channel) / cost.rate_limit);
  return cost.latency + transfer;
}

}  // namespace tandem
