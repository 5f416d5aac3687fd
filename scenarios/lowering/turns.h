#pragma once

#include "scenarios/lowering/chunk_program.h"
#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

/// Lowers two passes in turns, `first` first, so that the tokens that one of them sends to experts, or gets back, travel beside
/// the compute of the other. A turn ends where an exchange has been issued. With a backward first, beside a forward, that gives
///   compute   ... ATTN(B) ATTN(W) | ATTN(F)    | MLP(B)      MLP(W) | MLP(F)      | ATTN(B) ...
///   exchange  ... COMBINE(F)      | COMBINE(B) | DISPATCH(F)        | DISPATCH(B) | COMBINE(F) ...
/// the order of DeepSeek-AI 2024, DeepSeek-V3, figure 4; X(B) is there the backward of X: COMBINE(B) sends gradients to experts.
void take_turns(Context& context, ChunkProgram::Pieces first, ChunkProgram::Pieces second);

}  // namespace tandem::scenarios
