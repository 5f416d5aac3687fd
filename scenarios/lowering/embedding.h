#pragma once

#include <optional>

#include "scenarios/lowering/context.h"
#include "scenarios/lowering/encoder.h"

namespace tandem::scenarios {

struct EmbeddingParameters {
  ParameterId tokens = 0;
  ParameterId positions = 0;  ///< only where positions are learned
  std::optional<EncoderParameters> encoder = {};
};

/// Token embedding, vocabulary sharded over tp, plus learned positions sharded the same way where the model has them. Each rank
/// looks up what it holds; a reduce-scatter (sp) or all-reduce adds the parts up. An encoder's tokens stand before those of the
/// table, whose numbers at their positions are not looked up.
EmbeddingParameters declare_embedding(Context& context, ChunkParameters& parameters);

/// Declares the token table: the embedding's, or its copy that a tied LM head on another stage multiplies with.
ParameterSpec token_table(const Context& context, const std::string& tensor);

/// Starts a micro-batch: there is no input but the token ids.
BufferId embedding(Context& context, Tape& tape, const EmbeddingParameters& weights);

/// Embeds the tokens `ahead` positions later, without positions, from a table that this stage has.
BufferId embed_later_tokens(Context& context, Tape& tape, ParameterId table, std::int32_t ahead);

}  // namespace tandem::scenarios
