#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

/// attention: q [s,b,H,d], k [t,b,K,d], v [t,b,K,e]; out [s,b,H,e], lse [b,H,s,1] in fp32; e is d but in latent attention.
///
/// out = softmax(scale q k^T + mask) v by AttentionAttributes; lse is the log of each softmax's denominator, sum exp(scale q
/// k^T). Query head i reads key and value head i / (H/K) (grouped queries, Ainslie et al. 2023). When causal, a query sees the
/// keys at its own position and before; a query that sees none gives out 0 and lse -infinity. Results over disjoint blocks of
/// keys merge into the whole: lse = log sum exp(lse_j), out = sum exp(lse_j - lse) out_j.
///
/// Where sliding or chunked, it sees fewer (runtime/ops/attention_mask.h); a soft cap c makes scores c tanh(scale q k^T / c)
/// (Gemma 2, arXiv 2408.00118, section 2).
///
/// Where the sequences are packed of documents, a query sees keys of its own document alone, whose positions count from its start
/// (runtime/ops/documents.h).
///
/// FLOPs: 2 b H (d + e) for each pair of a query and a key it sees (q k^T and p v), in q's dtype.
CostFunction attention_cost;
HostKernel attention_host;

/// attention_backward: q, k, v, out, lse, dout; dq, dk, dv, all written.
///
/// FLOPs: 2 b H (3 d + 2 e) per pair: five products, q k^T (recomputed), dq and dk of depth d, dout v^T and dv of depth e; for e
/// = d 2.5 times forward (Dao 2023, FlashAttention-2, algorithm 2 and section 4.1).
CostFunction attention_backward_cost;
HostKernel attention_backward_host;

}  // namespace tandem
