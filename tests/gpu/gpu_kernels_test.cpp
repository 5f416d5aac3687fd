// Every kernel's cases on the GPU itself; tests/cuda runs the same ones emulated.

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/cuda/module/cudnn_attention.h"
#include "tests/cuda/operation_cases.h"
#include "tests/gpu/gpu_runner.h"

namespace tandem::studies::gpu_kernels_test {
namespace {

class GpuKernel : public testing::TestWithParam<OpKind> {
 protected:
  void SetUp() override {
    if (const std::string reason = no_gpu_reason(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

INSTANTIATE_TEST_SUITE_P(All, GpuKernel, testing::ValuesIn(operations_with_cases()),
                         [](const auto& kind) { return std::string(operation(kind.param).name); });

TEST_P(GpuKernel, EqualsItsHostKernel) {
  GpuRunner runner;
  for (const OperationCase& c : operation_cases(GetParam())) {
    SCOPED_TRACE(c.name);
    EXPECT_NO_THROW(expect_equals_host(c, runner));
  }
}

/// The smallest case of each operation, under compute-sanitizer.
class GpuSmallKernel : public GpuKernel {};
INSTANTIATE_TEST_SUITE_P(All, GpuSmallKernel, testing::ValuesIn(operations_with_cases()),
                         [](const auto& kind) { return std::string(operation(kind.param).name); });

TEST_P(GpuSmallKernel, TouchesItsMemoryAlone) {
  const auto elements = [](const OperationCase& c) {
    std::int64_t sum = 0;
    for (const CaseOperand& operand : c.operands) sum += operand.type.shape.elements();
    return sum;
  };
  GpuRunner runner;
  const std::vector<OperationCase> cases = operation_cases(GetParam());
  expect_equals_host(*std::ranges::min_element(cases, {}, elements), runner);
}

// The same numbers in every run, bit for bit. TANDEM_CUDNN_LIBRARY=none: with our own attention.
TEST_P(GpuKernel, IsTheSameInEveryRun) {
  if (GetParam() == OpKind::attention_backward && cudnn_version().has_value()) GTEST_SKIP() << "cuDNN adds dq up in any order";
  GpuRunner runner;
  for (const OperationCase& c : operation_cases(GetParam())) {
    SCOPED_TRACE(c.name);
    const auto twice = [&] {
      const std::vector<PlacedOperand> once = run_case(c, runner), again = run_case(c, runner);
      for (std::size_t i = 0; i < once.size(); ++i) EXPECT_EQ(once[i].bytes, again[i].bytes) << "operand " << i;
    };
    EXPECT_NO_THROW(twice());
  }
}

}  // namespace
}  // namespace tandem::studies::gpu_kernels_test
