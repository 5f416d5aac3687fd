#pragma once

#include "runtime/dag.h"

namespace tandem {

/// A collective as one fluid flow: after `latency`, `bytes_per_channel` run over each channel of the communicator's ring.
struct CollectiveCost {
  Seconds latency = 0;
  Bytes bytes_per_channel = 0;
};

/// NCCL's ring (or, for all-reduce, tree where its latency wins) for `bytes` over `members` ranks. `bytes` as in `Group`.
///   all-reduce      2 (n-1)/n bytes   all-gather, reduce-scatter, all-to-all   (n-1)/n bytes   send   bytes
/// An all-to-all is laid on the ring as well: exact where all members hang on one switch, and short of the detours of messages
/// between nodes.
CollectiveCost collective_cost(OpKind kind, Bytes bytes, std::size_t members, const RingLayout& ring);

/// The time on an otherwise idle network: latency + bytes_per_channel / (lowest capacity / multiplicity on the way).
Seconds uncontended_time(const CollectiveCost& cost, const RingLayout& ring, const std::vector<Link>& links);

}  // namespace tandem
