#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

/// attention_merge: part [s,b,H,d], part_lse [b,H,s]; out, lse, both updated: attention over more keys, disjoint from the first.
///
/// lse' = log(exp(lse) + exp(part_lse)), out' = exp(lse - lse') out + exp(part_lse - lse') part (Liu et al. 2023, Ring Attention,
/// section 3; the online softmax of Milakov and Gimelshein 2018 over blocks). A query that a side shows no key has lse -infinity
/// there, and takes the other side as it is.
CostFunction attention_merge_cost;
HostKernel attention_merge_host;

}  // namespace tandem
