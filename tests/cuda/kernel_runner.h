#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/ops/operation.h"

namespace tandem::studies {

/// An operand as its bytes, in the DAG's type.
struct PlacedOperand {
  OperandType type;
  std::vector<std::byte> bytes;
  float scale = 1;        ///< of fp8; what is written chooses it anew
  std::int64_t skew = 0;  ///< elements by which the operand begins behind an aligned address, as a view may
  int same_as = -1;       ///< the operand it shares its memory with
};

/// Where kernels for GPUs are run by the tests: on a GPU, or emulated.
class KernelRunner {
 public:
  virtual ~KernelRunner() = default;

  /// Runs the operation's kernel; `operands` are then what it left. Throws what the kernel throws, and std::runtime_error when it
  /// wrote beside the operands.
  virtual void run(OpKind kind, const OpAttributes& attributes, std::span<PlacedOperand> operands) = 0;
};

}  // namespace tandem::studies
