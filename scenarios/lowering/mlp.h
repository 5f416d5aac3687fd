#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

struct MlpParameters {
  ParameterId up = 0;  ///< gate and up projection in one, where the MLP is gated
  ParameterId down = 0;
  std::int64_t width = 0;                 ///< inner, on this rank
  std::vector<ParameterId> up_bias = {};  ///< one or none
  std::optional<ParameterId> down_bias = {};
};

/// SwiGLU or GELU MLP, inner width sharded over tp: `width` on this rank.
MlpParameters declare_mlp(const Context& context, ChunkParameters& parameters, const std::string& layer, std::int64_t width);

/// Says whether a kernel of its own does it, or the products before and after.
enum class Activates : std::uint8_t {
  alone,
  fused
};

BufferId activate(Context& context, Tape& tape, BufferId x, std::int64_t width, Activates how = Activates::alone);

/// GELU, which is that of an encoder's projector.
BufferId projector_activation(Context& context, Tape& tape, BufferId x, std::int64_t width);

/// The same, each row times its weight [rows, 1]; the backward leaves the gradients of the weights in `*gradients`.
BufferId activate_weighted(Context& context, Tape& tape, BufferId x, std::int64_t width, BufferId weights,
                           const std::shared_ptr<BufferId>& gradients, Activates how = Activates::alone);

/// Returns down(middle(inner)), `middle` being the activation function: computed again in the backward where the scenario says
/// so, from what was kept of `inner`, in fp8 where it says that.
BufferId down_of_activation(Context& context, Tape& tape, const Module& middle, const Module& down, BufferId inner);

BufferId mlp(Context& context, Tape& tape, const MlpParameters& weights, BufferId x);

}  // namespace tandem::scenarios
