#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

// The lightning indexer of DeepSeek sparse attention (DeepSeek-V3.2, arXiv 2512.02556, section 2.1). It has n heads of queries,
// and one key for each position; the score of a query's key u is
//
//   I_u = scale sum_h w_h relu(q_h k_u)
//
// A query sees its own position and those before; all by SparseAttentionAttributes, with Megatron-Core's scale
// 1 / sqrt(n d).

/// index_select: q [s,b,n,d], k [t,b,1,d], w [s,b,n]; chosen [b,s,K] (int32): the keys of the K highest scores, among equal ones
/// the earlier, by ascending number; -1 behind them where a query sees fewer.
///
/// Two kernels: scores, of 2 b n d FLOPs for each pair of a query and a key that it sees, are written in fp32; then they are read
/// once more to choose.
CostFunction index_select_cost;
PartsFunction index_select_parts;
HostKernel index_select_host;

/// index_target: q [s,b,H,d], k [t,b,1,d] of attention, chosen [b,s,K]; target [b,s,K] in fp32: for each chosen key the sum over
/// the heads of the softmax of attention's scores, over the chosen keys. With `all_keys` target is [b,s,t], over all keys that
/// the query sees, and 0 for others.
///
/// FLOPs: 2 b H d for each such pair.
CostFunction index_target_cost;
PartsFunction index_target_parts;
HostKernel index_target_host;

/// index_loss_backward: q, k, w as above, chosen, target; dq, dk, dw, all written: the gradients of
///
///   coefficient sum over queries of KL(p || softmax_u I_u),  p = target / sum target
///
/// over the keys of `target`. FLOPs: 6 b n d for each such pair: the scores again, and two products of their gradients.
CostFunction index_loss_backward_cost;
PartsFunction index_loss_backward_parts;
HostKernel index_loss_backward_host;

}  // namespace tandem
