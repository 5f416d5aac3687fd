#pragma once

#include <optional>

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

/// Says where the choices of a micro-batch's tokens go, and with which weight.
struct Routed {
  BufferId logits = no_id;  ///< [tokens, experts], fp32
  BufferId gates = no_id;   ///< [tokens, top_k], fp32
  BufferId slots = no_id;   ///< [tokens, top_k]
  BufferId counts = no_id;  ///< [sequences, experts], fp32, where each sequence has a balance loss
};

/// Replicated over tp, each rank routing tokens of its own (see own_tokens.h); a linear layer whose products are kept in fp32, as
/// Megatron-Core's moe_router_dtype does.
struct RouterParameters {
  ParameterId weight = 0;
  std::optional<ParameterId> logit_bias = {};  ///< with model.moe.router_bias
  std::size_t bias = 0;                        ///< with model.moe.expert_bias
  bool hashed = false;                         ///< a token's number chooses its experts
};
RouterParameters declare_router(const Context& context, ChunkParameters& parameters, const std::string& layer, bool hashed);

/// Where each sequence has a balance loss, its choices are counted here and summed over the ranks that route the others of its
/// tokens, while compute waits, as Megatron-Core's all-reduce over `tp_cp_group` does (moe_utils.py, seq_aux_loss of router.py).
Routed route(Context& context, const RouterParameters& router, BufferId own);

/// Lowers the gradient of the own tokens, from that of their gates. `x`: all tokens here. Where tensor-parallel ranks hold the
/// same tokens, each computes the whole gradient of the weight, as it does of the norms', from the gathered gradients of the
/// logits. Counts the choices of each expert, with model.moe.expert_bias: here and not in the forward, which recomputation
/// repeats.
BufferId route_backward(Context& context, const RouterParameters& router, const Routed& routed, BufferId x,
                        BufferId gate_gradients);

}  // namespace tandem::scenarios
