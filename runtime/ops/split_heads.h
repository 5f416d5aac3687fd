#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

/// split_heads: qkv [s,b,(H+2K)d]; q [s,b,H,d], k [s,b,K,d], v [s,b,K,d]. A row of qkv holds the H query heads, then the K key
/// heads, then the K value heads; SplitHeadsAttributes names H and K. In place of qkv there may be two: q [s,b,Hd], kv [s,b,2Kd].
///
/// Rotary embedding (Su et al. 2021, RoFormer, eq. 34) of q and k when `rotate`: elements i and i + d/2 of a head, the
/// "rotate half" pairing of Llama and Megatron, turn by the angle position * base^(-2i/d). d is even. Where only the first r
/// elements of a head are rotated, that holds of these, with r for d.
CostFunction split_heads_cost;
HostKernel split_heads_host;

/// split_heads_backward: dq, dk, dv; dqkv, or two as above. The transpose of the above: turns back, and joins.
CostFunction split_heads_backward_cost;
HostKernel split_heads_backward_host;

/// rotary: q [s,b,H,d], k [s,b,K,d], both updated: turned as above, by SplitHeadsAttributes. For heads that have been split
/// before.
CostFunction rotary_cost;
HostKernel rotary_host;

/// rotary_backward: dq, dk, both updated: turned back.
HostKernel rotary_backward_host;

}  // namespace tandem
