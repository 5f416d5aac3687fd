#pragma once

#include "tests/cuda/kernel_runner.h"

namespace tandem::studies {

/// Runs kernels' sources on the CPU. Operands lie between guards, and scratch starts as NaN.
class EmulatedRunner : public KernelRunner {
 public:
  void run(OpKind kind, const OpAttributes& attributes, std::span<PlacedOperand> operands) override;
};

}  // namespace tandem::studies
