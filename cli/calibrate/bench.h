#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/gpu.h"
#include "runtime/kernel_timer.h"

namespace tandem {

/// What a backend is calibrated with, and how much it can be asked.
struct CalibrationBench {
  std::unique_ptr<Gpu> gpu;  ///< first: what it made goes before it
  std::unique_ptr<KernelTimer> kernels;
  std::unique_ptr<CollectiveTimer> collectives;  ///< null where there is one rank alone
  ProfileOrigin origin;
  std::vector<DType> precisions;  ///< that a step can be trained in
  std::int64_t sequence = 0;      ///< tokens of a micro-batch, in the shapes of the model presets
  Bytes memory = 0;               ///< most that the operands of one kernel may take
};

/// Throws std::runtime_error where this build or machine has no such backend.
CalibrationBench open_bench(const std::string& backend);

}  // namespace tandem
