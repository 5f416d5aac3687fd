#pragma once

#include <optional>

#include "scenarios/lowering/context.h"
#include "scenarios/lowering/mlp.h"

namespace tandem::scenarios {

struct MixtureParameters {
  ParameterId router = 0;
  MlpParameters experts;
  std::optional<MlpParameters> shared;
};

MixtureParameters declare_mixture(const Context& context, ChunkParameters& parameters, const std::string& layer);

/// A mixture of experts: the router's choices, each expert's MLP on the tokens that chose it, their outputs weighted by the
/// gates where they return, or at the experts (`training.gates_at_experts`); beside them the shared experts as one MLP for every
/// token.
BufferId mixture(Context& context, Tape& tape, const MixtureParameters& weights, BufferId x);

}  // namespace tandem::scenarios
