#pragma once

#include "runtime/dag.h"

namespace tandem {

/// A collective as one fluid flow: after `latency`, `bytes_per_channel` run over each channel of one of the layout's paths.
struct CollectiveCost {
  Seconds latency = 0;
  Bytes bytes_per_channel = 0;
  std::uint32_t paths = 0;  ///< index into `Layout::paths`
};

/// NCCL's ring (or, for all-reduce, tree where its latency wins) for `bytes` over `members` ranks. `bytes` as in `Group`.
///   all-reduce      2 (n-1)/n bytes   all-gather, reduce-scatter, all-to-all   (n-1)/n bytes   send   bytes
CollectiveCost collective_cost(OpKind kind, Bytes bytes, std::size_t members, const Layout& layout);

/// The time on an otherwise idle network: latency + bytes_per_channel / (lowest capacity / multiplicity on the way).
Seconds uncontended_time(const CollectiveCost& cost, const Layout& layout, const std::vector<Link>& links);

}  // namespace tandem
