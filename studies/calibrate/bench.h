#pragma once

#include <memory>
#include <vector>

#include "runtime/cuda/gpu.h"
#include "runtime/kernel_timer.h"

namespace tandem::studies {

/// What a backend is calibrated with, and how much it can be asked.
struct CalibrationBench {
  std::unique_ptr<Gpu> gpu;  ///< first: what it made goes before it
  std::unique_ptr<KernelTimer> kernels;
  ProfileOrigin origin;
  std::vector<DType> precisions;  ///< that a step can be trained in
  std::int64_t sequence = 0;      ///< tokens of a micro-batch, in the shapes of the model presets
  Bytes memory = 0;               ///< most that the operands of one kernel may take
};

/// This machine's CPU.
CalibrationBench open_host_bench();
/// A GPU, as `open_gpu` gives it.
CalibrationBench open_gpu_bench(std::unique_ptr<Gpu> gpu);

}  // namespace tandem::studies
