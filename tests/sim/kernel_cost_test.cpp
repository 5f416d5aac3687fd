#include "sim/kernel_cost.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/sim/measured_kernels.h"
#include "tests/sim/tiled_device.h"

namespace tandem::sim::kernel_cost_test {
namespace {

std::size_t index_of(DType type) { return static_cast<std::size_t>(type); }

Device round_numbers() {
  Device device;
  device.name = "round";
  device.memory_bandwidth = 1e12;
  device.peak[index_of(DType::bf16)] = 1e15;
  device.peak[index_of(DType::f32)] = 1e13;
  device.efficiency.gemm[index_of(DType::bf16)].rate = 0.5;
  device.efficiency.attention_forward = 0.4;
  device.efficiency.attention_backward = 0.25;
  device.efficiency.memory = 0.8;
  device.efficiency.launch = 2e-6;
  return device;
}

Seconds roofline_time(OpClass op_class, const OpCost& cost) {
  return roofline_of(round_numbers(), op_class, cost.math).time(cost);
}

TEST(KernelTime, GemmIsBoundByItsArithmetic) {
  // 1e12 FLOPs at half of 1e15/s are 2 ms; 4e8 bytes at 0.8e12/s only 0.5 ms.
  EXPECT_DOUBLE_EQ(kernel_time(round_numbers(), gemm(10'000, 10'000, 5'000)), 2e-6 + 2e-3);
}

TEST(KernelTime, GemmIsBoundByMemoryWhenThin) {
  // 8e8 bytes of the second operand and a few more; 8e8 FLOPs are nothing.
  const double bytes = 2.0 * (20'000 + 20'000.0 * 20'000 + 20'000);
  EXPECT_DOUBLE_EQ(kernel_time(round_numbers(), gemm(1, 20'000, 20'000)), 2e-6 + bytes / 0.8e12);
}

TEST(KernelTime, AttentionHasItsOwnEfficiencies) {
  const OpCost cost{.flops = 1e12, .math = DType::bf16};
  EXPECT_DOUBLE_EQ(roofline_time(OpClass::attention_forward, cost), 2e-6 + 1e-3 / 0.4);
  EXPECT_DOUBLE_EQ(roofline_time(OpClass::attention_backward, cost), 2e-6 + 1e-3 / 0.25);
  const TimedKernel kernel = attention(4096, 32, 128);
  EXPECT_DOUBLE_EQ(kernel_time(round_numbers(), kernel), roofline_time(OpClass::attention_forward, cost_of(kernel)));
}

// Kernels one after the other, of which one waits for its bytes and the next for its products, take longer than their sum's
// roofline.
TEST(KernelTime, AScanIsTheSumOfItsKernels) {
  const auto operand = [](std::int64_t width) { return OperandType{Shape(4096, 1, width), DType::bf16}; };
  const TimedKernel scan{.op = OpKind::ssd_scan,
                         .operands = {operand(6144), operand(10'304), {Shape(192, 1), DType::bf16}, operand(4096), operand(4096)},
                         .attributes = SsdAttributes{.head_dim = 64, .groups = 8, .state = 128, .chunk = 256}};
  // What comes in and out of a kernel in MiB, and its products' GFLOPs (tests/runtime/ops_mamba_test.cpp): the sums move 0.5 + 2;
  // the states of chunks 32 + 8 + 2 + 32 for 4.3; passing them 32 + 16; C B^T 16 + 32 for 2.1; the outputs 32 + 4 * 32 + 2 + 8 +
  // 16 and 384 bytes for 4.3 and 4.3 of pairs. At 0.8e12 bytes/s and 5e14 FLOPs/s all wait for their bytes.
  const double MiB = 1 << 20, bytes = (2.5 + 74 + 48 + 48 + 186) * MiB + 384;
  EXPECT_NEAR(kernel_time(round_numbers(), scan, 5), 5 * 2e-6 + bytes / 0.8e12, 1e-12);
  Device slow = round_numbers();
  slow.peak[index_of(DType::bf16)] = 1e13;  // the outputs take 4.3 + 4.3 GFLOPs / 5e12 = 1.7 ms, passing states still its 63 us
  const double states = 2.0 * 4096 * 4096 * 128, keys = 2.0 * 4096 * 256 * 8 * 128, pairs = 4096.0 * 4096 * 257;
  EXPECT_NEAR(kernel_time(slow, scan, 5), 5 * 2e-6 + (2.5 + 48) * MiB / 0.8e12 + (2 * states + keys + pairs) / 5e12, 1e-12);
  EXPECT_GT(kernel_time(slow, scan, 5), 5 * 2e-6 + (2 * states + keys + pairs) / 5e12);
  EXPECT_EQ(kernels_of({}, scan.op, scan.attributes), 5);
  Device triton = round_numbers();
  triton.efficiency.scan = 0.25;
  EXPECT_NEAR(kernel_time(triton, scan, 5), 5 * 2e-6 + 4 * bytes / 0.8e12, 1e-12);
}

TEST(KernelTime, MemoryBoundKernelsStillHaveAnArithmeticRoof) {
  EXPECT_DOUBLE_EQ(roofline_time(OpClass::memory, {.flops = 1e6, .bytes = 800'000'000}), 2e-6 + 1e-3);
  EXPECT_DOUBLE_EQ(roofline_time(OpClass::memory, {.flops = 1e11, .bytes = 800'000'000}), 2e-6 + 1e-2);
}

TEST(KernelTime, MemoryBoundKernelsReachHalfTheirBandwidthWhereTheyTakeTwoLaunches) {
  EXPECT_DOUBLE_EQ(kernel_time(round_numbers(), copy_of(200'000)), 2e-6 + 2e-6);  // 1.6 MB at 0.8e12/s
}

TEST(KernelTime, SlowDeviceStretchesAllOfIt) {
  Device slow = round_numbers();
  slow.speed = 0.5;
  const TimedKernel kernel = gemm(10'000, 10'000, 5'000);
  EXPECT_DOUBLE_EQ(kernel_time(slow, kernel), 2 * kernel_time(round_numbers(), kernel));
  EXPECT_DOUBLE_EQ(kernel_lower_bound(slow, cost_of(kernel)), 2 * kernel_lower_bound(round_numbers(), cost_of(kernel)));
}

TEST(KernelTime, SlowTiledDeviceStretchesAllOfIt) {
  Device slow = tiled_device();
  slow.speed = 0.5;
  EXPECT_DOUBLE_EQ(kernel_time(slow, gemm(1000, 1000, 1000)), 2 * kernel_time(tiled_device(), gemm(1000, 1000, 1000)));
}

TEST(KernelTime, RefusesArithmeticTheDeviceLacks) {
  EXPECT_THROW(kernel_time(round_numbers(), gemm(1, 1, 1, DType::f8)), std::logic_error);
  EXPECT_THROW(roofline_time(OpClass::communication, {}), std::logic_error);
}

TEST(KernelLowerBound, IsTheRooflineAtFullPeaks) {
  EXPECT_DOUBLE_EQ(kernel_lower_bound(round_numbers(), {.flops = 1e12, .math = DType::bf16, .bytes = 1}), 1e-3);
  EXPECT_DOUBLE_EQ(kernel_lower_bound(round_numbers(), {.flops = 1, .math = DType::bf16, .bytes = 1'000'000'000}), 1e-3);
}

TEST(KernelTime, AKernelForEachExpertIsLaunchedForEach) {
  const Device device = round_numbers();
  const OperandType x{Shape(1000, 800), DType::bf16}, y{Shape(1000, 800), DType::f8};
  const TimedKernel cast{OpKind::cast, {x, y, y}, CastAttributes{.rows = std::vector<std::int32_t>(8, 1)}};
  const Seconds moving = 800'000.0 * 4 / 0.8e12;
  EXPECT_DOUBLE_EQ(kernel_time(device, cast), 2e-6 + moving);
  EXPECT_DOUBLE_EQ(kernel_time(device, cast, 8), 8 * 2e-6 + moving);
  const ExtraWork maximum{.kernels = 2, .bytes = 2};
  EXPECT_DOUBLE_EQ(extra_time(device, maximum, cast, 8), 8 * 2 * 2e-6 + 800'000.0 * 2 / 0.8e12);
  const TimedKernel transpose{OpKind::cast, {y, y}, CastAttributes{.in_place = true}};
  EXPECT_DOUBLE_EQ(extra_time(device, maximum, transpose), 0);
}

TEST(KernelTime, TheLossReachesAShareOfTheBandwidth) {
  Device device = round_numbers();
  const OperandType logits{Shape(200, 1, 4000), DType::bf16}, most{Shape(200, 1), DType::f32};
  const TimedKernel max{OpKind::cross_entropy_max, {logits, most}, {}};
  const Seconds usual = kernel_time(device, max) - 2e-6;
  device.efficiency.cross_entropy = 0.25;
  EXPECT_DOUBLE_EQ(kernel_time(device, max), 2e-6 + 4 * usual);
}

TEST(KernelTime, CastsToNarrowTypesReachAShareOfTheBandwidth) {
  Device device = round_numbers();
  const OperandType x{Shape(2000, 400), DType::bf16}, y{Shape(2000, 400), DType::f8};
  const TimedKernel narrow{OpKind::cast, {x, y, y}, CastAttributes{.to = NarrowType::e4m3}};
  const TimedKernel other{OpKind::cast, {x, x, x}, CastAttributes{}};
  const ExtraWork extra{.kernels = 2, .bytes = 2};
  const Seconds usual = kernel_time(device, narrow) - 2e-6, beside = extra_time(device, extra, narrow) - 4e-6;
  const Seconds usual_other = kernel_time(device, other), beside_other = extra_time(device, extra, other);
  device.efficiency.cast = 0.25;
  EXPECT_DOUBLE_EQ(kernel_time(device, narrow), 2e-6 + 4 * usual);
  EXPECT_DOUBLE_EQ(extra_time(device, extra, narrow), 4e-6 + 4 * beside);
  EXPECT_EQ(kernel_time(device, other), usual_other);
  EXPECT_EQ(extra_time(device, extra, other), beside_other);
}

TEST(KernelTime, WhatLoadsSingleElementsTakesThePaceOfMultiprocessors) {
  Device device = round_numbers();
  const OperandType x{Shape(2000, 400), DType::bf16};
  const TimedKernel add{OpKind::add, {x, x, x}, {}};
  const ExtraWork moved{.kernels = 2, .bytes = 4}, extra{.kernels = 2, .bytes = 4, .by_element = 3};
  const Seconds moving = extra_time(device, moved, add) - 4e-6;
  EXPECT_DOUBLE_EQ(extra_time(device, extra, add), 4e-6 + 4 * moving) << "as fast as the memory where the pace is not known";
  device.multiprocessors = 100;
  device.efficiency.element_rate = 2e9;
  const Seconds by_element = 3 * 2000 * 400 / (100 * 2e9);
  EXPECT_DOUBLE_EQ(extra_time(device, extra, add), 4e-6 + moving + by_element);
  device.memory_bandwidth *= 2;
  EXPECT_DOUBLE_EQ(extra_time(device, extra, add), 4e-6 + moving / 2 + by_element);
}

TEST(KernelTime, PermutationsReachAShareOfTheBandwidth) {
  Device device = round_numbers();
  const OperandType rows{Shape(2000, 400), DType::bf16};
  const TimedKernel regroup{OpKind::regroup, {rows, rows}, RegroupAttributes{.blocks = 2, .block = 1000, .rows = {500, 500}}};
  const Seconds usual = kernel_time(device, regroup) - 2e-6;
  device.efficiency.permute = 0.25;
  EXPECT_DOUBLE_EQ(kernel_time(device, regroup), 2e-6 + 4 * usual);
}

}  // namespace
}  // namespace tandem::sim::kernel_cost_test
