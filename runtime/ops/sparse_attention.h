#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

// Latent attention to keys that an indexer chose for each query (DeepSeek-V3.2, arXiv 2512.02556, section 2.1), in the form of
// multi-query attention: all heads share a key, whose first c elements are its value, too.

/// sparse_attention: q [s,b,H,d], k [t,b,1,d], chosen [b,s,K] (int32); out [s,b,H,c], lse [b,H,s], by SparseAttentionAttributes.
///
/// A row of `chosen` numbers the keys of a query, ascending, then -1 for those that it has too few of (index_select). With k_j
/// the j-th of them: out = sum_j p_j k_j[:c], p = softmax_j(scale q k_j), lse as in attention.h.
///
/// FLOPs: 2 b H (d + c) for each pair of a query and a chosen key. Bytes are those of the operands: neighbouring queries choose
/// much the same keys, which the caches hold.
CostFunction sparse_attention_cost;
HostKernel sparse_attention_host;

/// sparse_attention_backward: q, k, chosen, out, lse, dout; dq, dk, both written; dk has what comes through values, too.
///
/// FLOPs: 2 b H (3 d + 2 c) per pair, as in attention_backward.
CostFunction sparse_attention_backward_cost;
HostKernel sparse_attention_backward_host;

/// Returns the pairs of a query and a key that it chose, of one sequence, where a query chooses `most` of those that it sees, or
/// a window and what is left of compressed keys (window_select).
std::int64_t chosen_pairs(const SparseAttentionAttributes& attributes, std::int64_t most);

}  // namespace tandem
