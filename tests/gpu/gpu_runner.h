#pragma once

#include <string>

#include "tests/cuda/kernel_runner.h"

namespace tandem::studies {

/// Why there is no GPU to test on; empty: there is one.
std::string no_gpu_reason();

/// Runs kernels on the GPU. Operands lie between guards.
class GpuRunner : public KernelRunner {
 public:
  void run(OpKind kind, const OpAttributes& attributes, std::span<PlacedOperand> operands) override;
};

}  // namespace tandem::studies
