#pragma once

#include <array>

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

// RMSNorms of queries and keys over all heads of a token (OLMo 2), of which tensor-parallel ranks have some each: they add up the
// squares, and back the products, of both at once (runtime/ops/split_norm.h). Ranks that share a key-value head each add what
// they have of it, so that its sums count it as often, and so does the width.

bool is_normed_over_ranks(const Context& context);

/// A weight for each column of the heads here, which so many neighbours hold alike.
ParameterId declare_norm_over_ranks(const Context& context, ChunkParameters& parameters, const std::string& tensor,
                                    std::int64_t heads, std::int64_t replicas);

/// Of queries, then keys.
using OfQueriesAndKeys = std::array<BufferId, 2>;

struct NormedOverRanks {
  std::array<ParameterId, 2> weights;
  OfQueriesAndKeys x;
  BufferId squares = no_id;  ///< two sums of each token
};

/// Normalises heads [s,b,heads,d] into others.
NormedOverRanks norm_over_ranks(Context& context, const std::array<ParameterId, 2>& weights, const OfQueriesAndKeys& x,
                                const OfQueriesAndKeys& y);
/// Returns the gradients of `x`, from those of `y`.
OfQueriesAndKeys norm_over_ranks_backward(Context& context, const NormedOverRanks& normed, const OfQueriesAndKeys& dy);

}  // namespace tandem::scenarios
