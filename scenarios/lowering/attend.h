#pragma once

#include <functional>
#include <optional>

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

/// Scores that the queries of so many heads of this rank, from the first on, see beside those of their keys.
struct AttentionSink {
  ParameterId scores = 0;
  std::int64_t first_head = 0, heads = 0;
};

/// Queries, keys and values by heads, [positions, b, heads, width] each, or their gradients.
struct Heads {
  BufferId q = no_id, k = no_id, v = no_id;
  BufferId kv = no_id;  ///< keys, then values in one buffer, of which `k` and `v` are views: one message carries both
  std::optional<AttentionSink> sink = {};
};

Heads make_heads(Context& context, const Shape& q, const Shape& k, const Shape& v);
Heads make_like(Context& context, const Heads& heads);

/// The heads' outputs, and the function that leads from their gradients back to those of queries, keys and values. `heads` are
/// those that were attended, or what recomputing them gave.
struct Attended {
  BufferId out = no_id;
  std::function<Heads(Context&, const Heads& heads, BufferId dout)> backward;
};

/// Lowers attention of this rank's queries to all keys of the sequence, of which it holds those at its own positions.
Attended attend(Context& context, const Heads& heads);

}  // namespace tandem::scenarios
