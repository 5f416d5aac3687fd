#include "sim/nccl_channels.h"

#include <algorithm>

#include "sim/nccl_choice.h"

namespace tandem::sim {
namespace {

using Channels = std::int32_t;

bool is_of_pair(OpKind kind) { return kind == OpKind::send || kind == OpKind::receive; }

Bytes least_bytes(Protocol protocol) { return nccl_constants().bytes_per_channel[static_cast<std::size_t>(protocol)]; }

Channels worth(Bytes bytes, Bytes least, Channels most) {
  return static_cast<Channels>(std::min<Bytes>(most, std::max<Bytes>(1, bytes / least)));
}

Channels channels_of(OpKind kind, Bytes bytes, std::size_t members, const Layout& layout, const CollectiveCost& cost,
                     const NcclConstants::Channels& channels) {
  const Algorithm algorithm = layout.paths[cost.paths].algorithm;
  if (traits_of(algorithm).in_switches) return layout.nodes == 1 ? channels.nvls : channels.nvls_over_nodes;
  if (sends_tokens_once(algorithm)) return nccl_constants().token_kernels(algorithm).multiprocessors;
  if (algorithm == Algorithm::direct || is_of_pair(kind)) {
    // A rank's sends and receives share its channels, half of them each.
    if (is_of_pair(kind)) return (layout.nodes == 1 ? channels.direct_in_node : channels.direct_over_nodes) / 2;
    return layout.nodes == 1 ? channels.direct_in_node : most_channels(members, layout, channels);
  }
  if (algorithm == Algorithm::ring) return ring_channels(bytes, members, layout, cost.protocol, channels);
  return worth(bytes, least_bytes(cost.protocol), most_channels(members, layout, channels));
}

/// Returns the bytes that cross a member's memory, the protocol's flags included.
double memory_bytes(OpKind kind, const Layout& layout, const CollectiveCost& cost, std::size_t members) {
  const Paths& paths = layout.paths[cost.paths];
  const double sent = static_cast<double>(cost.bytes_per_channel) / cost.stretch * paths.channels;
  switch (kind) {
    case OpKind::all_reduce:
      if (traits_of(paths.algorithm).in_switches)
        return 2 * sent * static_cast<double>(members + 1) / static_cast<double>(members);
      return traits_of(paths.algorithm).memory_of_sent * sent;
    case OpKind::all_gather:
    case OpKind::reduce_scatter:
    case OpKind::all_to_all:
      return 2 * sent;
    default:
      return sent;
  }
}

}  // namespace

std::int32_t most_channels(std::size_t members, const Layout& layout, const NcclConstants::Channels& channels) {
  if (layout.nodes == 1) return channels.in_node;
  const auto rails = std::max<std::size_t>(1, members / layout.nodes);
  return std::min(channels.most_over_nodes, channels.per_rail * static_cast<Channels>(rails));
}

std::int32_t ring_channels(Bytes bytes, std::size_t members, const Layout& layout, Protocol protocol,
                           const NcclConstants::Channels& channels) {
  Bytes least = least_bytes(protocol);
  if (protocol == Protocol::ll) least *= static_cast<Bytes>(members);
  return worth(bytes, least, most_channels(members, layout, channels));
}

Occupation nccl_occupation(OpKind kind, Bytes bytes, std::size_t members, const Layout& layout, const CollectiveCost& cost,
                           Seconds time, Architecture architecture) {
  if (members < 2 || architecture == Architecture::unknown) return {};
  const NcclConstants::Channels& channels = nccl_constants().channels[static_cast<std::size_t>(architecture)];
  return {.multiprocessors = channels_of(kind, bytes, members, layout, cost, channels),
          .memory = time > 0 ? memory_bytes(kind, layout, cost, members) / time : 0};
}

}  // namespace tandem::sim
