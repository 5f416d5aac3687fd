// Times from a profile: exact where measured, and what must hold between.
#include "sim/kernel_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "sim/kernel_cost.h"
#include "tests/sim/measured_kernels.h"

namespace tandem::sim::kernel_model_test {
namespace {

/// 3 us, of matrix products 4 us, then 500 TFLOP/s or 2 TB/s.
Seconds known_cost(const OpCost& cost) {
  return (cost.flops > 0 ? 4e-6 : 3e-6) + std::max(cost.flops / 500e12, static_cast<double>(cost.bytes) / 2e12);
}

const std::vector<std::int64_t> grid{64, 256, 1024, 4096};

std::vector<TimedKernel> gemm_grid() {
  std::vector<TimedKernel> kernels;
  for (const std::int64_t m : grid)
    for (const std::int64_t n : grid)
      for (const std::int64_t k : grid) kernels.push_back(gemm(m, n, k));
  return kernels;
}

TEST(KernelModel, MeasuredKernelsTakeTheirMedian) {
  std::mt19937 random(1);
  Device device;
  for (const TimedKernel& kernel : gemm_grid()) {
    const Seconds median = std::exp(std::uniform_real_distribution(-12.0, -4.0)(random));  // as contradictory as can be
    device.measured.push_back({kernel, {median, median / 2, median * 2, 9}});
  }
  device.speed = 0.5;
  const KernelModel model(device);
  for (const MeasuredKernel& measured : device.measured) EXPECT_EQ(model.time(measured.kernel), measured.timing.median / 0.5);
}

TEST(KernelModel, WhatOnlyChangesNumbersIsTheSameKernel) {
  FakeTimer timer(known_cost);
  const TimedKernel measured{OpKind::adam, std::vector<OperandType>(6, {Shape(1), DType::f32}),
                             AdamAttributes{.learning_rate = 0.1F, .step = 1}};
  TimedKernel later = measured;
  later.attributes = AdamAttributes{.learning_rate = 0.2F, .step = 7};
  EXPECT_EQ(key_of(measured), key_of(later));
  TimedKernel flat = gemm(128, 64, 32), split = flat;
  split.operands[0].shape = Shape(64, 2, 32);
  split.operands[2].shape = Shape(64, 2, 64);
  EXPECT_EQ(key_of(flat), key_of(split));
  EXPECT_FALSE(key_of(flat) == key_of(gemm(128, 32, 64)));
  EXPECT_FALSE(key_of(attention(64, 2, 8)) == key_of(attention(64, 2, 8, false)));
  TimedKernel shifted = attention(64, 2, 8);
  std::get<AttentionAttributes>(shifted.attributes).queries.start[0] = 32;  // sees more keys
  EXPECT_FALSE(key_of(attention(64, 2, 8)) == key_of(shifted));
}

TEST(KernelModel, ReproducesAKnownCost) {
  FakeTimer timer(known_cost);
  std::vector<TimedKernel> kernels = gemm_grid();
  for (std::int64_t elements = 1 << 6; elements <= 1 << 26; elements *= 16) kernels.push_back(copy_of(elements));
  for (const std::int64_t sequence : grid) kernels.push_back(attention(sequence, 8, 64));
  const Device device = measured_device(kernels, timer);
  const KernelModel model(device);
  const FittedDevice fitted(device, device.measured);
  EXPECT_NEAR(fitted.roofline(OpClass::memory, DType::f32).memory, 2e12, 1e9);
  EXPECT_NEAR(fitted.roofline(OpClass::gemm, DType::bf16).arithmetic, 500e12,
              50e12);  // some of the larger ones are bound by memory

  std::mt19937 random(2);
  const auto size = [&](double low, double high) {
    return static_cast<std::int64_t>(std::exp(std::uniform_real_distribution(std::log(low), std::log(high))(random)));
  };
  double worst = 0;
  for (int i = 0; i < 2000; ++i) {
    const TimedKernel kernel = i % 4 == 0   ? copy_of(size(64, 1e8))
                               : i % 4 == 1 ? attention(size(64, 8192), size(1, 64), 64)
                                            : gemm(size(64, 8192), size(64, 8192), size(64, 8192));
    worst = std::max(worst, std::abs(model.time(kernel) / known_cost(cost_of(kernel)) - 1));
  }
  EXPECT_LT(worst, 0.15);
  EXPECT_GT(worst, 0);
}

TEST(KernelModel, NeverFallsAsWorkGrows) {
  // Measured times with noise of a factor of two: contradictions on purpose.
  std::mt19937 random(3);
  FakeTimer timer(known_cost);
  Device device = measured_device({}, timer);
  for (const TimedKernel& kernel : gemm_grid()) {
    const Seconds time = known_cost(cost_of(kernel)) * std::uniform_real_distribution(0.7, 1.4)(random);
    device.measured.push_back({kernel, {time, time, time, 1}});
  }
  const KernelModel model(device);
  for (int i = 0; i < 300; ++i) {
    std::array<std::int64_t, 3> size{};
    for (std::int64_t& s : size) s = std::uniform_int_distribution<std::int64_t>(5, 6000)(random) * 2 + 1;  // none is measured
    Seconds before = 0;
    for (std::int64_t& s = size[i % 3]; s < 40'000; s += 1 + s / 8 * 2) {
      const Seconds now = model.time(gemm(size[0], size[1], size[2]));
      ASSERT_GE(now, before * (1 - 1e-12)) << size[0] << ' ' << size[1] << ' ' << size[2];
      before = now;
    }
  }
}

TEST(KernelModel, IsContinuous) {
  FakeTimer timer(known_cost);
  const KernelModel model(measured_device(gemm_grid(), timer));
  std::mt19937 random(4);
  for (int i = 0; i < 500; ++i) {
    std::array<std::int64_t, 3> size{};
    for (std::int64_t& s : size) s = std::uniform_int_distribution<std::int64_t>(1000, 9000)(random);
    const Seconds here = model.time(gemm(size[0], size[1], size[2]));
    ++size[i % 3];
    const Seconds beside = model.time(gemm(size[0], size[1], size[2]));
    // At most so many times as much work: a relative step of 1 / size, here at most 1 / 1000.
    ASSERT_LE(beside, here * (1 + 1.001e-3));
    ASSERT_GE(beside, here * (1 - 1e-12));
  }
}

TEST(KernelModel, UnmeasuredFamiliesHaveTheFittedRoofline) {
  FakeTimer timer(known_cost);
  std::vector<TimedKernel> kernels = gemm_grid();
  for (std::int64_t elements = 1 << 6; elements <= 1 << 26; elements *= 16) kernels.push_back(copy_of(elements));
  Device device = measured_device(kernels, timer);
  device.peak[static_cast<std::size_t>(DType::f32)] = 60e12;
  device.efficiency.gemm[static_cast<std::size_t>(DType::f32)].rate = 0.5;
  device.memory_bandwidth = 1;  // overridden by what was measured
  device.efficiency.memory = 1;
  const KernelModel model(device);
  const TimedKernel fp32 = gemm(2048, 2048, 2048, DType::f32);
  EXPECT_NEAR(model.time(fp32), 3e-6 + cost_of(fp32).flops / 30e12, 1e-7);
  TimedKernel accumulating = gemm(3000, 3000, 3000);
  std::get<GemmAttributes>(accumulating.attributes).accumulate = true;
  EXPECT_NEAR(model.time(accumulating), known_cost(cost_of(accumulating)), 0.1 * known_cost(cost_of(accumulating)));
}

TEST(KernelFit, FindsALineThroughNoise) {
  std::mt19937 random(5);
  std::vector<MeasuredKernel> kernels;
  for (int i = 0; i < 400; ++i) {
    const TimedKernel kernel = copy_of(1 << (4 + i % 24));
    const Seconds time =
        (5e-6 + static_cast<double>(cost_of(kernel).bytes) / 1e12) * std::uniform_real_distribution(0.9, 1.1)(random);
    kernels.push_back({kernel, {time, time, time, 1}});
  }
  const Roofline line = fitted_line(kernels);
  EXPECT_NEAR(line.launch, 5e-6, 0.1e-6);
  EXPECT_NEAR(line.memory, 1e12, 0.02e12);
}

TEST(KernelFit, OneSizeHasNoLaunchOfItsOwn) {
  const std::vector<MeasuredKernel> one{{copy_of(1000), {2e-6, 2e-6, 2e-6, 1}}};
  EXPECT_EQ(fitted_line(one).launch, 0);
  EXPECT_DOUBLE_EQ(fitted_line(one).memory, 8000 / 2e-6);
}

}  // namespace
}  // namespace tandem::sim::kernel_model_test
