#pragma once

#include <optional>
#include <variant>

#include "scenarios/lowering/attention.h"
#include "scenarios/lowering/context.h"
#include "scenarios/lowering/mixture.h"
#include "scenarios/lowering/mla.h"
#include "scenarios/lowering/mlp.h"

namespace tandem::scenarios {

struct LayerParameters {
  ParameterId attention_norm = 0;
  std::variant<AttentionParameters, MlaParameters> attention;
  ParameterId mlp_norm = 0;
  MlpParameters mlp;
  std::optional<MixtureParameters> mixture;  ///< in place of the MLP
};

LayerParameters declare_layer(const Context& context, ChunkParameters& parameters, std::int64_t layer);

/// A pre-norm transformer layer: x + attention(norm(x)), then x + mlp(norm(x)); recomputed in whole when the scenario says so.
BufferId layer(Context& context, Tape& tape, const LayerParameters& weights, BufferId x);

}  // namespace tandem::scenarios
