#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "runtime/cuda/emulation/grid.h"
#include "runtime/cuda/module/kernel.h"
#include "tests/cuda/emulated_runner.h"
#include "tests/cuda/operation_cases.h"

namespace tandem::studies::kernels_test {
namespace {

/// By operation: a process per case would take longer than the cases.
class Kernel : public testing::TestWithParam<OpKind> {
 protected:
  EmulatedRunner runner;
  std::vector<OperationCase> cases = operation_cases(GetParam());
};

INSTANTIATE_TEST_SUITE_P(All, Kernel, testing::ValuesIn(operations_with_cases()),
                         [](const auto& kind) { return std::string(operation(kind.param).name); });

TEST(Cases, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const OperationCase& c : operation_cases()) EXPECT_TRUE(names.insert(c.name).second) << c.name;
}

TEST(Cases, CoverEveryOperationThatIsNoCommunication) {
  const std::vector<OpKind> covered = operations_with_cases();
  for (std::size_t i = 0; i < op_kind_count; ++i) {
    const auto kind = static_cast<OpKind>(i);
    if (is_communication(kind)) continue;
    EXPECT_NE(device_operation(kind).kernel, nullptr) << operation(kind).name;
    EXPECT_TRUE(std::ranges::find(covered, kind) != covered.end()) << operation(kind).name;
  }
}

TEST_P(Kernel, EqualsItsHostKernel) {
  for (const OperationCase& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_NO_THROW(expect_equals_host(c, runner));
  }
}

// Bit for bit: whatever depended on who comes first would differ.
TEST_P(Kernel, DoesNotDependOnTheOrderOfBlocksAndThreads) {
  for (const OperationCase& c : cases) {
    SCOPED_TRACE(c.name);
    const std::vector<PlacedOperand> in_order = run_case(c, runner);
    const emulation::ScopedOrder order({.shuffled = true, .seed = 11});
    const std::vector<PlacedOperand> shuffled = run_case(c, runner);
    for (std::size_t i = 0; i < in_order.size(); ++i) {
      EXPECT_EQ(in_order[i].bytes, shuffled[i].bytes) << "operand " << i;
      EXPECT_EQ(in_order[i].scale, shuffled[i].scale) << "operand " << i;
    }
  }
}

}  // namespace
}  // namespace tandem::studies::kernels_test
