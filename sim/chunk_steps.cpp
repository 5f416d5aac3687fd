#include "sim/chunk_steps.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "runtime/base/divide_up.h"
#include "sim/nccl_choice.h"
#include "sim/nccl_constants.h"

namespace tandem::sim {
namespace {

/// Returns how many times the operation goes round the ring; 0 where it does not run on one.
std::uint32_t passes_of(OpKind kind) {
  switch (kind) {
    case OpKind::all_reduce:
      return 2;
    case OpKind::all_gather:
    case OpKind::reduce_scatter:
      return 1;
    default:
      return 0;
  }
}

std::uint32_t channels_of(std::span<const Hop> hops) { return std::ranges::max_element(hops, {}, &Hop::channel)->channel + 1; }

/// Hops from a leaf of the tree to the root, as NCCL counts them (src/graph/trees.cc: a chain in the node, levels over nodes).
std::uint32_t depth_of_tree(std::uint32_t members, const Layout& layout) {
  return members / layout.nodes - 1 + static_cast<std::uint32_t>(std::bit_width(layout.nodes)) - 1;
}

/// NCCL cuts a channel's part into slices of an eighth of its 4 MiB buffer, or smaller ones until the tree is filled: down to
/// 128 KiB for 8 slices per level, 64 KiB for 4, 32 KiB for one (NVIDIA/nccl, src/enqueue.cc, ncclPatternTreeUpDown).
std::uint32_t slices(Bytes part, std::uint32_t depth) {
  Bytes slice = Bytes{512} << 10;
  for (const auto& [per_level, smallest] : {std::pair{8, 128}, std::pair{4, 64}, std::pair{1, 32}}) {
    while (part / slice < Bytes{depth} * per_level && slice > Bytes{smallest} << 10) slice /= 2;
  }
  return static_cast<std::uint32_t>(std::max<Bytes>(1, divide_up(part, slice)));
}

/// Finds the hops that have a member at their `end`, by the member's place and the channel.
class HopsAt {
 public:
  HopsAt(std::span<const Hop> hops, std::uint32_t Hop::*end, bool down) : channels_(channels_of(hops)) {
    for (std::uint32_t h = 0; h < hops.size(); ++h) {
      if (hops[h].down != down) continue;
      const std::size_t place = std::size_t{hops[h].*end} * channels_ + hops[h].channel;
      if (at_.size() <= place) at_.resize(place + 1);
      at_[place].push_back(h);
    }
  }
  std::span<const std::uint32_t> operator()(std::uint32_t member, std::uint32_t channel) const {
    const std::size_t place = std::size_t{member} * channels_ + channel;
    return place < at_.size() ? std::span<const std::uint32_t>(at_[place]) : std::span<const std::uint32_t>();
  }

 private:
  std::uint32_t channels_;
  std::vector<std::vector<std::uint32_t>> at_;
};

void wait_for(std::span<const std::uint32_t> before, std::uint32_t hop, ChunkSteps& steps) {
  for (const std::uint32_t other : before) steps.after[other].push_back(hop);
  steps.before[hop] = static_cast<std::uint32_t>(before.size());
}

/// Makes each hop wait for those that arrive where it begins, and the first hops down for the last hops up.
void link_hops(ChunkSteps& steps) {
  const HopsAt up(steps.hops, &Hop::to, false), down(steps.hops, &Hop::to, true);
  for (std::uint32_t h = 0; h < steps.hops.size(); ++h) {
    const Hop& hop = steps.hops[h];
    const auto from_above = down(hop.from, hop.channel);
    wait_for(hop.down && !from_above.empty() ? from_above : up(hop.from, hop.channel), h, steps);
  }
}

}  // namespace

Bytes ChunkSteps::bytes_of(std::uint32_t message) const {
  // Whole bytes of all, so that they add up: quotients first, for bytes times messages may overflow.
  const Bytes each = bytes / messages, rest = bytes % messages;
  return each + (rest * (message + 1) / messages - rest * message / messages);
}

ChunkSteps chunk_steps(OpKind kind, Bytes bytes, std::size_t members, const Layout& layout, const CollectiveCost& cost) {
  const Paths& paths = layout.paths[cost.paths];
  const auto n = static_cast<std::uint32_t>(members);
  ChunkSteps steps{.hops = paths.hops};
  if (steps.hops.empty() || n == 1)
    return {.bytes = cost.bytes_per_channel, .start = cost.latency, .rate_limit = cost.rate_limit};

  steps.start = cost.start;
  steps.intra_latency = cost.intra_latency;
  steps.inter_latency = cost.inter_latency;
  steps.after.resize(steps.hops.size());
  steps.before.assign(steps.hops.size(), 0);

  const Bytes channels = channels_of(steps.hops);
  // A channel of the flow may be a part of one that the hops are counted in, or several.
  steps.rate_limit = cost.rate_limit * paths.channels / static_cast<double>(channels);
  const std::uint32_t passes = passes_of(kind);
  const AlgorithmTraits::Steps shape = traits_of(paths.algorithm).steps;
  if (shape == AlgorithmTraits::Steps::tree) {
    steps.bytes = divide_up(bytes, channels);
    steps.messages = slices(steps.bytes, depth_of_tree(n, layout));
    link_hops(steps);
  } else if (shape == AlgorithmTraits::Steps::ring && passes > 0) {
    steps.messages = passes * (n - 1);
    steps.bytes = divide_up(bytes, n * channels) * steps.messages;
    steps.shift = 1;
    link_hops(steps);
  } else {
    const bool to_all = kind == OpKind::all_to_all || kind == OpKind::all_gather;
    const Bytes of_pair = to_all ? divide_up(bytes, n) : bytes;
    steps.bytes = shape == AlgorithmTraits::Steps::ring ? divide_up(of_pair * (n - 1), channels) : of_pair;
  }
  if (cost.protocol != Protocol::simple)
    steps.bytes = std::llround(static_cast<double>(steps.bytes) /
                               nccl_constants().data_per_wire_byte[static_cast<std::size_t>(cost.protocol)]);
  steps.bytes = std::llround(static_cast<double>(steps.bytes) * cost.stretch);
  return steps;
}

}  // namespace tandem::sim
