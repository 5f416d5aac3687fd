#pragma once

#include <functional>

#include "runtime/dag/dag_builder.h"
#include "scenarios/lowering/stage_program.h"
#include "scenarios/mesh/world.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// Tells the builder of every rank and communicator, before the first rank is lowered.
void add_ranks_and_communicators(const World& world, DagBuilder& builder);

/// Lowers what `program` says of one rank. Where activations are offloaded, `program` is called twice: see offload_activations.h.
void lower_rank(DagBuilder& builder, const Scenario& scenario, const World& world, RankIndex rank,
                const std::function<void(StageProgram&)>& program);

}  // namespace tandem::scenarios
