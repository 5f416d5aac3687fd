#pragma once

#include <optional>

#include "scenarios/lowering/context.h"
#include "scenarios/lowering/mlp.h"
#include "scenarios/lowering/router.h"

namespace tandem::scenarios {

struct MixtureParameters {
  RouterParameters router;
  struct Latent {
    ParameterId down = 0, up = 0;
  };
  std::optional<Latent> latent;
  MlpParameters experts;
  std::optional<MlpParameters> shared;
  std::optional<ParameterId> shared_gate;
};

MixtureParameters declare_mixture(const Context& context, ChunkParameters& parameters, const std::string& layer, bool hashed);

/// A mixture of experts: the router's choices, each expert's MLP on the tokens that chose it, their outputs weighted by the
/// gates where they return, or at the experts (`training.gates_at_experts`); beside them the shared experts as one MLP for every
/// token, which with `model.moe.shared_gate` a gate weights. With `model.moe.latent` the tokens are projected down before they
/// are sent and their sums up, by weights that every rank has; the router and the shared experts see them as they are.
BufferId mixture(Context& context, Tape& tape, const MixtureParameters& weights, BufferId x);

}  // namespace tandem::scenarios
