#pragma once

#include <functional>

#include "runtime/dag/dag_builder.h"
#include "scenarios/lowering/stage_program.h"
#include "scenarios/mesh/world.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// Tells the builder of every rank and communicator, before the first rank is lowered.
void add_ranks_and_communicators(const World& world, DagBuilder& builder);

/// Returns the blocks of matrices that the ranks of the sharded step take for matrices of their own, where this is its unsharded
/// reference: those that a rank of such a mesh declares. Of another step, none.
MatrixBlocks blocks_of_sharded(const Scenario& scenario);

/// Lowers what `program` says of one rank. Where activations are offloaded, `program` is called twice: see offload_activations.h.
/// `of_sharded`: what `blocks_of_sharded` returns, which is the same for all ranks.
void lower_rank(DagBuilder& builder, const Scenario& scenario, const World& world, RankIndex rank,
                const std::function<void(StageProgram&)>& program, const MatrixBlocks& of_sharded);

/// Lowers these ranks by `lower`, which is told where to: one after the other, or several at a time (runtime/base/parallel.h),
/// each to a part of its own. Either way the builder has the same in the end, and what the first of the ranks that throw one
/// throws is thrown.
void lower_each(DagBuilder& builder, const std::vector<RankIndex>& ranks,
                const std::function<void(DagBuilder& builder, RankIndex rank)>& lower);

}  // namespace tandem::scenarios
