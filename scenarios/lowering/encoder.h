#pragma once

#include <vector>

#include "scenarios/lowering/context.h"
#include "scenarios/lowering/layer.h"
#include "scenarios/lowering/patches.h"
#include "scenarios/lowering/projector.h"

namespace tandem::scenarios {

/// Of a vision transformer before the language model (EncoderSpec).
struct EncoderParameters {
  PatchParameters patches;
  std::vector<LayerParameters> layers;
  ParameterId norm = 0;
  ProjectorParameters projector;
};

/// Its layers are those of any model (layer.h), lowered with the encoder's sizes (ModelView): heads, MLP and the projector
/// sharded over tp, rows between them over sp (patches.h, projector.h).
EncoderParameters declare_encoder(Context& context, ChunkParameters& parameters);

/// Writes this rank's part of the sum that the tokens of the images are, [tokens, 1, hidden of the model], to `out`: added up
/// over tp together with the looked-up tokens behind them (embedding.h). Backward it takes the gradient of the sum, and returns
/// nothing; a frozen one leaves nothing on the tape.
void encode(Context& context, Tape& tape, const EncoderParameters& weights, BufferId out);

}  // namespace tandem::scenarios
