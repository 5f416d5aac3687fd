#pragma once

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

/// The places of a layer where elements are dropped, and the embedding's output.
enum class DropoutSite : std::uint8_t {
  embedding,
  probabilities,
  attention_output,
  mlp_output
};

/// What names the elements of a hidden activation of this rank, [positions, b, h]: its own positions, or its shard of them under
/// sp.
DropoutAttributes dropout_of_hidden(const Context& context, DropoutSite site);
/// The same of attention's probabilities of this rank's heads, over the whole sequence.
DropoutAttributes dropout_of_probabilities(const Context& context, std::int64_t heads);

/// Lowers dropout after the embedding, where the scenario has any.
BufferId drop_embedding(Context& context, Tape& tape, BufferId x);

}  // namespace tandem::scenarios
