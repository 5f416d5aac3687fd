#pragma once

#include "scenarios/lowering/context.h"
#include "scenarios/lowering/mlp.h"

namespace tandem::scenarios {

/// The experts that this rank holds, their matrices below each other; inner width sharded over etp.
MlpParameters declare_experts(const Context& context, ChunkParameters& parameters, const std::string& layer);

/// Sends `rows` [parts * groups * block, h] to their experts' ranks and back: dispatch all-to-all, all-gather over etp, rows
/// sorted by expert, grouped MLP; then the way back: sorted by source, reduce-scatter over etp, combine all-to-all.
BufferId experts(Context& context, Tape& tape, const MlpParameters& weights, BufferId rows);

}  // namespace tandem::scenarios
