#pragma once

#include "scenarios/lowering/context.h"

namespace tandem {

/// Where the choices of a micro-batch's tokens go, and with which weight.
struct Routed {
  BufferId logits = no_id;  ///< [tokens, experts], fp32
  BufferId gates = no_id;   ///< [tokens, top_k], fp32
  BufferId slots = no_id;   ///< [tokens, top_k]
};

/// Replicated over tp, each rank routing the tokens of its sequence shard; a linear layer whose products are kept in fp32, as
/// Megatron-Core's moe_router_dtype does.
ParameterId declare_router(const Context& context, ChunkParameters& parameters, const std::string& layer);

Routed route(Context& context, ParameterId weight, BufferId x);

/// The gradient of the router's input, from that of the gates.
BufferId route_backward(Context& context, ParameterId weight, const Routed& routed, BufferId x, BufferId gate_gradients);

}  // namespace tandem
