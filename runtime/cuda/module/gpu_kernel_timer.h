#pragma once

#include <memory>

#include "runtime/kernel_timer.h"

namespace tandem {

/// Times kernels on the calling thread's device. Runs are put into the stream so densely that the GPU never waits for the host
/// (a CUDA graph of many), on operands that take turns until they exceed the L2 cache of `l2_bytes`, and between loads (see
/// step_load.h), so that clocks are those of a step.
std::unique_ptr<KernelTimer> make_gpu_kernel_timer(int multiprocessors, Bytes l2_bytes);

}  // namespace tandem
