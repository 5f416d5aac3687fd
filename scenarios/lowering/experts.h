#pragma once

#include <memory>

#include "scenarios/lowering/context.h"
#include "scenarios/lowering/exchange.h"
#include "scenarios/lowering/mlp.h"

namespace tandem::scenarios {

/// The experts that this rank holds, their matrices below each other; inner width sharded over etp.
MlpParameters declare_experts(const Context& context, ChunkParameters& parameters, const std::string& layer);

/// Sends rows [parts * groups * block, h] to their experts' ranks and back: dispatch all-to-all, all-gather over etp, rows
/// sorted by expert, grouped MLP; then the way back: sorted by source, reduce-scatter over etp, combine all-to-all. Where gates
/// come with the rows, they go to the experts with them and weight their rows after the activation, so that what returns need
/// only be added up; the backward leaves their gradients in `*gate_gradients`, as the gates were sent.
BufferId experts(Context& context, Tape& tape, const MlpParameters& weights, const Rows& sent,
                 const std::shared_ptr<BufferId>& gate_gradients);

}  // namespace tandem::scenarios
