#pragma once

#include "scenarios/lowering/mla.h"
#include "scenarios/lowering/passed_keys.h"

namespace tandem::scenarios {

// What the forms of latent attention have in common.

MlaHeadsAttributes mla_heads_attributes(Context& context, const Positions& positions);

/// Queries projected up on the whole sequence, for the heads of this rank.
struct Queries {
  BufferId up = no_id;  ///< [s, b, heads * (nope + rope)]
  Tape tape;
};
Queries project_queries(Context& context, const MlaParameters& weights, BufferId query);

/// Rotated, by heads: [s, b, heads, nope + rope].
BufferId split_queries(Context& context, const Queries& queries);

/// From the gradient of the heads' queries to that of what they were projected up from.
BufferId queries_backward(Context& context, const Queries& queries, BufferId dq);

/// The latents of all positions of this context-parallel rank.
PassedKeys gather_latents(Context& context, const PassedKeys& shard);

}  // namespace tandem::scenarios
