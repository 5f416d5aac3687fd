#pragma once

#include <optional>

#include "scenarios/lowering/context.h"
#include "scenarios/lowering/tape.h"

namespace tandem::scenarios {

/// What makes rows of an image of its patches, before the layers of an encoder.
struct PatchParameters {
  ParameterId product = 0;
  std::optional<ParameterId> bias = {}, class_token = {}, positions = {}, norm = {};
};

/// All replicated over tp; under sp each rank embeds its own rows.
PatchParameters declare_patches(Context& context, ChunkParameters& parameters);

/// Returns the rows that the layers see, [rows of all images, 1, h], or this rank's shard of them: patches times the product,
/// each image's class token behind them, with learned positions added, normed, as far as the encoder has these. Nothing has a
/// gradient before the product.
BufferId embed_patches(Context& context, Tape& tape, const PatchParameters& weights);

/// Returns the rows without class tokens.
BufferId without_class_tokens(Context& context, Tape& tape, BufferId x);

/// Returns the rows that the projector takes: those of neighbouring patches as one, or their means.
BufferId merge_patches(Context& context, Tape& tape, BufferId x);

}  // namespace tandem::scenarios
