#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "runtime/dag/dag_builder.h"
#include "scenarios/lowering/copied_ranks.h"
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
/// `of_sharded`: what `blocks_of_sharded` returns, which is the same for all ranks. Returns how many buffers there were when
/// `program` was called.
std::size_t lower_rank(DagBuilder& builder, const Scenario& scenario, const World& world, RankIndex rank,
                       const std::function<void(StageProgram&)>& program, const MatrixBlocks& of_sharded);

/// Lowers a rank to a builder, or what it declares before its first task: so many buffers, as it returns.
using LowerRank = std::function<std::size_t(DagBuilder& builder, RankIndex rank, bool declares_only)>;

/// Lowers these ranks by `lower`: one after the other, or several at a time (runtime/base/parallel.h), each to a part of its own.
/// Either way the builder has the same in the end, and what the first of the ranks that throw one throws is thrown. `copied`: by
/// place, those that are copied from another where they declare the same; empty: none is.
void lower_each(DagBuilder& builder, const std::vector<RankIndex>& ranks, const LowerRank& lower,
                const std::vector<std::optional<CopiedRank>>& copied = {});

}  // namespace tandem::scenarios
