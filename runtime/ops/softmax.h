#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

/// softmax: scores [b,H,s,t]; p [b,H,s,t]. Each query's probabilities over the keys that it sees by AttentionAttributes, whose
/// scale is not applied; a key that it does not see has probability 0, as has every key of a query that sees none.
///
/// Bytes: what is seen is read, everything written (Megatron-LM's scaled_upper_triang_masked_softmax).
CostFunction softmax_cost;
HostKernel softmax_host;

/// softmax_backward: p, dp; ds. With each query's sum over its keys, ds = p (dp - sum p dp).
CostFunction softmax_backward_cost;
HostKernel softmax_backward_host;

/// Returns the pairs of a query and a key that it sees, of one head in all sequences.
std::int64_t visible_pairs(const Shape& scores, const AttentionAttributes& attributes);

}  // namespace tandem
