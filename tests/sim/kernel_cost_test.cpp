#include "sim/kernel_cost.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace tandem {
namespace {

std::size_t index_of(DType type) { return static_cast<std::size_t>(type); }

Device round_numbers() {
  Device device;
  device.name = "round";
  device.memory_bandwidth = 1e12;
  device.peak[index_of(DType::bf16)] = 1e15;
  device.peak[index_of(DType::f32)] = 1e13;
  device.efficiency.gemm[index_of(DType::bf16)] = 0.5;
  device.efficiency.attention_forward = 0.4;
  device.efficiency.attention_backward = 0.25;
  device.efficiency.memory = 0.8;
  device.efficiency.launch = 2e-6;
  return device;
}

TEST(KernelTime, GemmIsBoundByItsArithmetic) {
  // 1e12 FLOPs at half of 1e15/s are 2 ms; 1e8 bytes at 0.8e12/s only 0.125 ms.
  const OpCost cost{.flops = 1e12, .math = DType::bf16, .bytes = 100'000'000};
  EXPECT_DOUBLE_EQ(kernel_time(round_numbers(), OpClass::gemm, cost), 2e-6 + 2e-3);
}

TEST(KernelTime, GemmIsBoundByMemoryWhenThin) {
  const OpCost cost{.flops = 1e9, .math = DType::bf16, .bytes = 800'000'000};
  EXPECT_DOUBLE_EQ(kernel_time(round_numbers(), OpClass::gemm, cost), 2e-6 + 1e-3);
}

TEST(KernelTime, AttentionHasItsOwnEfficiencies) {
  const OpCost cost{.flops = 1e12, .math = DType::bf16};
  EXPECT_DOUBLE_EQ(kernel_time(round_numbers(), OpClass::attention_forward, cost), 2e-6 + 1e-3 / 0.4);
  EXPECT_DOUBLE_EQ(kernel_time(round_numbers(), OpClass::attention_backward, cost), 2e-6 + 1e-3 / 0.25);
}

TEST(KernelTime, MemoryBoundKernelsStillHaveAnArithmeticRoof) {
  EXPECT_DOUBLE_EQ(kernel_time(round_numbers(), OpClass::memory, {.flops = 1e6, .bytes = 800'000'000}), 2e-6 + 1e-3);
  EXPECT_DOUBLE_EQ(kernel_time(round_numbers(), OpClass::memory, {.flops = 1e11, .bytes = 800'000'000}), 2e-6 + 1e-2);
}

TEST(KernelTime, SlowDeviceStretchesAllOfIt) {
  Device slow = round_numbers();
  slow.speed = 0.5;
  const OpCost cost{.flops = 1e12, .math = DType::bf16};
  EXPECT_DOUBLE_EQ(kernel_time(slow, OpClass::gemm, cost), 2 * kernel_time(round_numbers(), OpClass::gemm, cost));
  EXPECT_DOUBLE_EQ(kernel_lower_bound(slow, cost), 2 * kernel_lower_bound(round_numbers(), cost));
}

TEST(KernelTime, RefusesArithmeticTheDeviceLacks) {
  const OpCost fp8{.flops = 1, .math = DType::f8};
  EXPECT_THROW(kernel_time(round_numbers(), OpClass::gemm, fp8), std::logic_error);
  EXPECT_THROW(kernel_time(round_numbers(), OpClass::communication, {}), std::logic_error);
}

TEST(KernelLowerBound, IsTheRooflineAtFullPeaks) {
  EXPECT_DOUBLE_EQ(kernel_lower_bound(round_numbers(), {.flops = 1e12, .math = DType::bf16, .bytes = 1}), 1e-3);
  EXPECT_DOUBLE_EQ(kernel_lower_bound(round_numbers(), {.flops = 1, .math = DType::bf16, .bytes = 1'000'000'000}), 1e-3);
}

}  // namespace
}  // namespace tandem
