#pragma once

#include <variant>

#include "scenarios/lowering/attention.h"
#include "scenarios/lowering/context.h"
#include "scenarios/lowering/gated_delta.h"
#include "scenarios/lowering/mamba.h"
#include "scenarios/lowering/mixture.h"
#include "scenarios/lowering/mla.h"
#include "scenarios/lowering/mlp.h"

namespace tandem::scenarios {

/// Of both halves, as far as the layer has them.
struct LayerParameters {
  ParameterId mixer_norm = 0;
  std::variant<std::monostate, AttentionParameters, MlaParameters, MambaParameters, GatedDeltaParameters> mixer;
  ParameterId feed_norm = 0;
  std::variant<std::monostate, MlpParameters, MixtureParameters> feed;

  bool has_experts() const { return std::holds_alternative<MixtureParameters>(feed); }
};

LayerParameters declare_layer(const Context& context, ChunkParameters& parameters, std::int64_t layer);

/// A pre-norm layer: x + mixer(norm(x)), then x + feed(norm(x)), or only one of the two, as `ModelSpec::layer_kind` says;
/// recomputed in whole when the scenario says so.
BufferId layer(Context& context, Tape& tape, const LayerParameters& weights, BufferId x);

}  // namespace tandem::scenarios
