#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

/// delta_rule: mixed [s,b,2 K E + H P], projected [s,b,2 K E + 2 H P + 2 H], parameters [2 H',1]; out [s,b,H P]. The gated delta
/// rule (Yang et al. 2024, arXiv 2412.06464) as Qwen3-Next has it, for H value heads of width P, which share K key heads of width
/// E (DeltaRuleAttributes).
///
///   mixed       q | k | v, after the convolution             projected   (q | k | v before it) | (z) | b | a
///   parameters  A_log | dt_bias, of H' heads, those of this operation from `first_head` on
///
///   q_t and k_t are divided by their lengths, sqrt(sum of squares + 1e-6), and q_t by sqrt(E) as well
///   w_t = sigmoid(b_t),  g_t = -exp(A_log) softplus(a_t + dt_bias)
///   S_t = exp(g_t) S_(t-1) + w_t k_t (v_t - exp(g_t) S_(t-1)^T k_t)^T,  out_t = S_t^T q_t            S [E,P]
///
/// in chunks of C positions (section 3.3 there, the WY form), with G_t = g_1 + .. + g_t within one and S the state before it:
///
///   (I + A) U = W,  A_tu = w_t (k_t . k_u) exp(G_t - G_u) for u < t,  row t of W: w_t (v_t - exp(G_t) S^T k_t)
///   out_t = exp(G_t) S^T q_t + sum_(u <= t) (q_t . k_u) exp(G_t - G_u) U_u
///   S'    = exp(G_C) S + sum_u exp(G_C - G_u) k_u U_u^T
///
/// Where the sequences are packed of documents (runtime/ops/documents.h), t counts the tokens of one document after the other,
/// and all exp(G_t - G_u) between two of them are 0, as is exp(G_t) S behind the first that ends in the chunk.
///
/// Costs are those of the kernels that `chunk_gated_delta_rule` of flash-linear-attention launches, each with what it reads and
/// writes: G and A in fp32, all else in v's type. FLOPs of one position and value head: C E 2 for A, C^2 / 3 for the inverse of
/// I + A, 2 C (E + P) for what that makes of keys and values, 4 E P for the states, 2 E P + 2 C (E + P) for the outputs.
CostFunction delta_rule_cost;
PartsFunction delta_rule_parts;
HostKernel delta_rule_host;

/// delta_rule_backward: mixed, projected, parameters, dout; dmixed, dprojected, dparameters. Of dprojected the columns of b and a
/// are written, others left as they are; the gradient of the parameters is added.
///
/// The forward's G, A, its inverse and the states are made again. FLOPs beside those: 12 E P + C (14 E + 8 P) + 4 C^2.
CostFunction delta_rule_backward_cost;
PartsFunction delta_rule_backward_parts;
HostKernel delta_rule_backward_host;

}  // namespace tandem
