#pragma once

#include <memory>
#include <vector>

#include "runtime/cuda/gpu.h"
#include "runtime/kernel_timer.h"

namespace tandem::studies {

/// What a backend is calibrated with, and the limits of what can be measured on it.
struct CalibrationBench {
  std::unique_ptr<Gpu> gpu;  ///< first, so that it is destroyed after all that it made
  std::unique_ptr<KernelTimer> kernels;
  ProfileOrigin origin;
  std::vector<DType> precisions;  ///< in which a step can be trained
  std::vector<DType> grids;       ///< those of them whose products and attentions are measured on regular grids
  std::int64_t sequence = 0;      ///< tokens of a micro-batch, in the shapes of the model presets
  Bytes memory = 0;               ///< what the operands of one kernel may take at most
};

/// Returns the bench of this machine's CPU.
CalibrationBench open_host_bench();
/// Returns the bench of a GPU that `open_gpu` returned.
CalibrationBench open_gpu_bench(std::unique_ptr<Gpu> gpu);

}  // namespace tandem::studies
