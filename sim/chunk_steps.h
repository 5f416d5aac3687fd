#pragma once

#include <span>
#include <vector>

#include "runtime/dag/dag.h"
#include "sim/collective_cost.h"

namespace tandem::sim {

/// A collective as NCCL runs it: `messages` on every hop of its layout, one after the other, and what each waits for.
///
///   ring     n members, C channels: a message is a chunk of bytes / (n C). In step i a member passes on what it got in step
///            i - 1; n - 1 steps gather or scatter, 2 (n - 1) reduce and gather.
///   tree     a channel's part of the vector, cut into slices (see slices()): each goes up when it has come from all children,
///            and from the root down again, while the next are on their way up.
///   direct   all messages at once.
/// What has no hops (NVLS, a group whose bandwidth is nothing to anybody) is one flow, as in collective_cost.h.
///
/// A message leaves when what it waits for has arrived and the one before it has left, and arrives its hop's latency after it has
/// left: latencies of a hop overlap with its later transfers.
struct ChunkSteps {
  std::span<const Hop> hops = {};
  std::uint32_t messages = 1;                          ///< on each hop
  Bytes bytes = 0;                                     ///< of all messages on a hop
  std::uint32_t shift = 0;                             ///< message i waits for message i - shift of each hop before its own
  std::vector<std::vector<std::uint32_t>> after = {};  ///< by hop: those whose messages wait for its messages
  std::vector<std::uint32_t> before = {};              ///< by hop: how many it waits for
  Seconds start = 0;                                   ///< before the first message
  BytesPerSecond rate_limit = 0;                       ///< of each message; 0: none
  Seconds intra_latency = 0, inter_latency = 0;        ///< of a hop

  /// Returns the bytes of a message; messages are equal but for one byte.
  Bytes bytes_of(std::uint32_t message) const;
  Seconds latency_of(const Hop& hop) const { return hop.between_nodes ? inter_latency : intra_latency; }
};

/// `cost` is the same collective's as one flow.
/// The result refers to `layout`.
ChunkSteps chunk_steps(OpKind kind, Bytes bytes, std::size_t members, const Layout& layout, const CollectiveCost& cost);

}  // namespace tandem::sim
