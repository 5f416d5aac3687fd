#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

/// ssd_scan: mixed [s,b,H P + 2 G N], projected [s,b,2 H P + 2 G N + H], parameters [3 H',1]; out [s,b,H P], y [s,b,H P].
/// Mamba-2's scan of the state of each head over the positions (Dao & Gu 2024, arXiv 2405.21060), for H heads of width P
/// (SsdAttributes::head_dim), G groups of them that share B and C, and a state of N.
///
///   mixed       x | B | C, after the convolution             projected   z | (x | B | C before it) | dt
///   parameters  A_log | dt_bias | D, of H' heads, those of this operation from `first_head` on
///
///   d_t = softplus(dt_t + dt_bias),  a_t = -exp(A_log) d_t
///   S_t = exp(a_t) S_(t-1) + d_t x_t B_t^T          [P,N], S before the first token of a document is 0
///   y_t = S_t C_t + D x_t,  out_t = silu(z_t) y_t
///
/// in chunks of Q positions (section 6), with L_t = a_1 + .. + a_t within one:
///
///   y_t = sum_(u <= t) (C_t . B_u) exp(L_t - L_u) d_u x_u + exp(L_t) S C_t + D x_t,     S the state before the chunk
///   S'  = exp(L_Q) S + sum_u exp(L_Q - L_u) d_u x_u B_u^T
///
/// Where the sequences are packed of documents (runtime/ops/documents.h), t counts the tokens of one document after the other,
/// and all exp(L_t - L_u) between two of them are 0, as is exp(L_t) S behind the first that ends in the chunk (`seq_idx` there).
///
/// Costs are those of the kernels that `mamba_split_conv1d_scan_combined` of state-spaces/mamba launches (version 2.2), each with
/// what it reads and writes: the sums L and the products C B^T in fp32, states between kernels in fp32 and then in x's type.
/// FLOPs of a pass over s b positions: 2 H P N for the chunks' states, 2 Q G N for C B^T, H P (Q + 1) for the pairs of a chunk,
/// of which the causal half is multiplied, 2 H P N for what a state gives.
CostFunction ssd_scan_cost;
PartsFunction ssd_scan_parts;
HostKernel ssd_scan_host;

/// ssd_scan_backward: mixed, projected, parameters, y, dout; dmixed, dprojected, dparameters. Of dprojected the columns of z and
/// dt are written, others left as they are; the gradient of the parameters is added.
///
/// The forward's states and products are made again. FLOPs beside those, over s b positions: 2 H P N each for the states'
/// gradients and for those of x, B and C from the states; H P (Q + 1) each for the gradient of x within a chunk, for that of C
/// B^T, and for that of the sums L; 4 Q G N for those of C and B.
CostFunction ssd_scan_backward_cost;
PartsFunction ssd_scan_backward_parts;
HostKernel ssd_scan_backward_host;

}  // namespace tandem
