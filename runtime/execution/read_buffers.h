#pragma once

#include <functional>

#include "runtime/cuda/gpu.h"
#include "runtime/host/memory.h"

namespace tandem {

/// Copies from the GPU those base buffers of the step's DAG that are wanted. All that is wanted must belong to ranks that run
/// here.
HostMemory read_buffers(GpuStep& step, const Dag& dag, const std::function<bool(const Buffer&)>& wanted);

}  // namespace tandem
