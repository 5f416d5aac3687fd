#pragma once

#include <memory>

#include "scenarios/lowering/chunk_program.h"
#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

/// The pass of a micro-batch through a chunk, lowered piece by piece, or in turns with another.
class PassInTurns {
 public:
  virtual ~PassInTurns() = default;
  virtual bool is_done() const = 0;
  virtual void take_piece() = 0;
  /// Up to the next cut.
  virtual void take_turn() = 0;
};

/// Lowers these pieces. Takes `notes`, if there are any to be taken.
std::unique_ptr<PassInTurns> lowered_pass(Context& context, ChunkProgram::Pieces pieces, PassNotes* notes);

/// Lowers a forward and a backward in turns, so that each hides the other's communication: piece by piece, the forward first.
/// Both begin when what they receive is there, as DualPipe's `_forward_backward_chunk` and Megatron-Core's combined 1F1B do.
/// Where exchanges of experts are to hide (`training.overlap.ep`), a turn ends where an exchange has been issued, and the
/// backward is first, so that the tokens that one pass sends to experts, or gets back, travel beside the compute of the other:
///   compute   ... ATTN(B) ATTN(W) | ATTN(F)    | MLP(B)      MLP(W) | MLP(F)      | ATTN(B) ...
///   exchange  ... COMBINE(F)      | COMBINE(B) | DISPATCH(F)        | DISPATCH(B) | COMBINE(F) ...
/// the order of DeepSeek-AI 2024, DeepSeek-V3, figure 4; X(B) is there the backward of X: COMBINE(B) sends gradients to experts.
void take_turns(const Scenario& scenario, PassInTurns& forward, PassInTurns& backward);

}  // namespace tandem::scenarios
