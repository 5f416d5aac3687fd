#pragma once

#include <optional>
#include <variant>

#include "scenarios/lowering/attention.h"
#include "scenarios/lowering/compressed_attention.h"
#include "scenarios/lowering/context.h"
#include "scenarios/lowering/gated_delta.h"
#include "scenarios/lowering/hyper_connection.h"
#include "scenarios/lowering/lightning.h"
#include "scenarios/lowering/mamba.h"
#include "scenarios/lowering/mixture.h"
#include "scenarios/lowering/mla.h"
#include "scenarios/lowering/mlp.h"

namespace tandem::scenarios {

/// Before and after what a half does.
struct NormsOfHalf {
  std::optional<ParameterId> before, after;
};

/// Of both halves, as far as the layer has them.
struct LayerParameters {
  NormsOfHalf mixer_norms;
  std::variant<std::monostate, AttentionParameters, MlaParameters, MambaParameters, GatedDeltaParameters, LightningParameters,
               CompressedAttentionParameters>
      mixer;
  NormsOfHalf feed_norms;
  std::variant<std::monostate, MlpParameters, MixtureParameters> feed;
  std::optional<HyperConnectionParameters> mixer_streams = {}, feed_streams = {};  ///< with model.hyper_connections

  bool has_experts() const { return std::holds_alternative<MixtureParameters>(feed); }
};

LayerParameters declare_layer(const Context& context, ChunkParameters& parameters, std::int64_t layer);
/// The same, whose tensors' names begin so.
LayerParameters declare_layer(const Context& context, ChunkParameters& parameters, const std::string& name, std::int64_t layer);

/// x + mixer(norm(x)), then x + feed(norm(x)), or only one of the two, as `ModelSpec::layer_kind` says, with the norms where
/// `norm_placement` has them and the factors of `ModelSpec::residual`, or between residual streams; recomputed in whole when the
/// scenario says so.
BufferId layer(Context& context, Tape& tape, const LayerParameters& weights, BufferId x);

}  // namespace tandem::scenarios
