#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

// The heads of multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1). Only the last r of a query's and a key's
// n + r elements carry the position (see rotation.h), and all heads share these r elements of the key.

/// mla_queries: x [s,b,H(n+r)]; q [s,b,H,n+r], r by MlaHeadsAttributes.
CostFunction mla_queries_cost;
HostKernel mla_queries_host;

/// mla_queries_backward: dq; dx
CostFunction mla_queries_backward_cost;
HostKernel mla_queries_backward_host;

/// mla_keys_values: x [t,b,H(n+e)], rope [t,b,r]; k [t,b,H,n+r], v [t,b,H,e]. A row of x holds for each head its n elements of
/// the key, then its value.
CostFunction mla_keys_values_cost;
HostKernel mla_keys_values_host;

/// mla_keys_values_backward: dk, dv; dx, drope. drope is the sum over the heads.
CostFunction mla_keys_values_backward_cost;
HostKernel mla_keys_values_backward_host;

}  // namespace tandem
