#pragma once

#include "scenarios/lowering/mla.h"
#include "scenarios/lowering/passed_keys.h"

namespace tandem::scenarios {

/// What projections down leave of a token: all that the heads of any rank need to know of it. Or the gradients.
struct Latents {
  BufferId query = no_id;  ///< [s/tp, b, q_rank], or x itself
  PassedKeys keys;         ///< latent [s/tp, b, kv_rank]; rotary part of the keys [s/tp, b, rope_dim], not yet rotated
};

/// The heads' outputs [s, b, heads, v], and the way back to the gradients of the latents.
struct MlaAttended {
  BufferId out = no_id;
  std::function<Latents(Context&, BufferId dout)> backward;
};

/// Projects the latents up, for the heads of this rank, and attends.
///
/// Where keys are passed on between context-parallel ranks, it is the latents that travel, kv_rank + rope_dim numbers per token
/// in place of every head's key and value, and each rank projects them up for its own heads: once for each block that it attends
/// to, and once more in the backward. Each tensor-parallel rank passes on the whole latents of all its tokens. The gradients that
/// come back are those of its heads alone, and are summed over tp once they are home.
MlaAttended attend_latents(Context& context, const MlaParameters& weights, const Latents& latents);

}  // namespace tandem::scenarios
