#pragma once

#include <optional>
#include <vector>

#include "scenarios/lowering/context.h"
#include "scenarios/lowering/tape.h"

namespace tandem::scenarios {

/// Of what makes tokens of the model of an encoder's rows: products with GELU between them, each with its bias where they have
/// any.
struct ProjectorParameters {
  std::optional<ParameterId> norm = {};
  std::vector<ParameterId> weights, biases;
};

/// Products are column- and row-parallel in turn. Where they are odd in number, the last is replicated, each rank multiplying its
/// own rows under sp, and else all of them.
ProjectorParameters declare_projector(Context& context, ChunkParameters& parameters);

/// `x`: rows, or their shard under sp. Writes this rank's part of the sum over tp that the tokens are to `out`, [tokens, 1,
/// hidden of the model]. Backward it takes the gradient of the sum.
void project(Context& context, Tape& tape, const ProjectorParameters& weights, BufferId x, BufferId out);

}  // namespace tandem::scenarios
