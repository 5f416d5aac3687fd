#pragma once

#include "runtime/cuda/module/kernel.h"
#include "runtime/host/collectives.h"
#include "runtime/ops/operation.h"

namespace tandem {

/// Reads what a tensor of the GPU holds, as fp32 (fp8 times its scale) or int32, once all work put into queues before has ended.
void read_back(const DeviceTensor& from, const HostTensor& out);

/// Runs one f32 collective on the host's memory: copies the operands to the GPU, runs it there as that of virtual ranks, and
/// copies the results back.
void run_on_copies(Queue& queue, const Collective& collective);

}  // namespace tandem
