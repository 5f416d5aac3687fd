#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

/// lightning_attention: mixed [s,b,3 H D]; out [s,b,H D]. Linear attention whose past fades (Qin et al. 2024, arXiv 2401.04658)
/// as MiniMax-Text-01 has it, for H heads of width D (LightningAttributes); a row of `mixed` is q | k | v, each of all heads.
///
///   S_t = exp(-r) S_(t-1) + k_t v_t^T,  out_t = S_t^T q_t         S [D,D]
///   r   = decay 2^(-8 (first_head + h + 1) / heads)               of head h; of the model's `heads`, those here begin at
///   first_head
///
/// in chunks of C positions, where position t is the (i_t + 1)-th of its chunk and S the state before that:
///
///   out_t = exp(-r (i_t + 1)) S^T q_t + sum_(u <= t) (q_t . k_u) exp(-r (t - u)) v_u
///   S'    = exp(-r C) S + sum_u exp(-r (C - 1 - i_u)) k_u v_u^T
///
/// Costs are those of the kernels that `lightning_attn2_parallel` of OpenNLPLab/lightning-attention launches, each with what it
/// reads and writes: states in fp32, all else in the type of `mixed`. FLOPs of one position and head: 2 D (C + 1) within the
/// chunk, of which a position sees half, 2 D^2 for the states, 2 D^2 for what is read of them.
CostFunction lightning_attention_cost;
PartsFunction lightning_attention_parts;
HostKernel lightning_attention_host;

/// lightning_attention_backward: mixed, dout; dmixed. The states are made again.
///
/// FLOPs of one position and head: 2 D^2 for the states, 2 D^2 for their gradients, 6 D (C + 1) within the chunk, where the
/// scores and their gradients are made by two of the three products that need them, and 6 D^2 from the states.
CostFunction lightning_attention_backward_cost;
PartsFunction lightning_attention_backward_parts;
HostKernel lightning_attention_backward_host;

}  // namespace tandem
