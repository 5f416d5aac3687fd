#pragma once

#include "runtime/cuda/module/kernel.h"
#include "runtime/host/collectives.h"

namespace tandem {

/// A collective of virtual ranks, whose members' buffers all lie in this GPU's memory: one kernel in `queue`. The members are
/// those of collective_of(), their operands' addresses the GPU's, and `dtype` what those hold. Sums are taken in fp32 in the
/// order of the members and rounded once. In place where a shard lies in its place of the whole. Throws std::runtime_error for
/// sums of fp8, whose members have scales of their own.
void run_virtual_collective(Queue& queue, const Collective& collective, DType dtype);

}  // namespace tandem
