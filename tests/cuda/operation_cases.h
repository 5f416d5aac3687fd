#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/dag/dag.h"
#include "tests/cuda/kernel_runner.h"

namespace tandem::studies {

/// What an operand holds before the operation. Numbers of a type with fewer digits are rounded to it first, for both kernels.
struct CaseOperand {
  OperandType type;
  Access access = Access::read;
  std::vector<float> numbers = {};  ///< by element; of `i32` the integers below; empty: what is written starts as NaN
  std::vector<std::int32_t> integers = {};
  std::int64_t skew = 0;  ///< as in PlacedOperand, like the next
  int same_as = -1;
  bool by_columns = false;  ///< fp8 that is stored as the transpose
};

/// An operation on given operands; what the kernel leaves in the written ones is compared with what the host kernel leaves.
struct OperationCase {
  std::string name;  ///< letters, digits and underscores, unique
  OpKind kind = OpKind::add;
  OpAttributes attributes;
  std::vector<CaseOperand> operands;
  /// Of fp32, against the largest number expected, or updated; rounding the result to its type is allowed beside.
  double tolerance = 1e-5;
};

/// Cases for all operations that have a kernel of this project's own: several shapes each, in fp32, bf16 and fp16.
std::vector<OperationCase> operation_cases();
std::vector<OperationCase> operation_cases(OpKind kind);
std::vector<OpKind> operations_with_cases();

/// Runs the case and fails the test where the two kernels differ, or where an operand that is read was changed.
void expect_equals_host(const OperationCase& c, KernelRunner& runner);

/// All operands as the kernel leaves them.
std::vector<PlacedOperand> run_case(const OperationCase& c, KernelRunner& runner);

}  // namespace tandem::studies
