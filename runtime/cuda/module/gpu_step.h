#pragma once

#include <memory>

#include "runtime/cuda/gpu.h"

namespace tandem {

/// Makes a step on the calling thread's device, which has so many multiprocessors.
std::unique_ptr<GpuStep> make_gpu_step(const Dag& dag, const GpuStepOptions& options, int multiprocessors);

}  // namespace tandem
