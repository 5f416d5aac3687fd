// Closed forms of tiles and waves, and what must hold for any parameters.
#include "sim/gemm_cost.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "sim/kernel_cost.h"
#include "tests/sim/measured_kernels.h"
#include "tests/sim/tiled_device.h"

namespace tandem::sim::gemm_cost_test {
namespace {

Seconds time_of(const Device& device, GemmSize size, std::int64_t count = 1, const GemmTypes& types = {},
                Clock clock = Clock::sustained) {
  const GemmBatch batch{size, count};
  return gemm_time(device, {&batch, 1}, types, clock);
}

GemmCut cut_of(const Device& device, GemmSize size) {
  const GemmBatch batch{size};
  return best_cut(device, {&batch, 1}, {});
}

/// 2 * 128 * 128 * k FLOPs of a tile at 5 TFLOP/s.
Seconds tile_time(double k) { return 2.0 * 128 * 128 * k / 5e12; }

TEST(GemmTime, AWaveIsOneTileOnEachMultiprocessor) {
  const Device device = tiled_device();
  EXPECT_DOUBLE_EQ(time_of(device, {1280, 1280, 4096}), 5e-6 + tile_time(4096));              // 100 tiles
  EXPECT_DOUBLE_EQ(time_of(device, {128, 101 * 128, 4096}), 5e-6 + 2 * tile_time(4096));      // one more
  EXPECT_DOUBLE_EQ(time_of(device, {128, 100 * 128 + 1, 4096}), 5e-6 + 2 * tile_time(4096));  // one column of one more
  EXPECT_DOUBLE_EQ(time_of(device, {1280, 1280, 4096}, 7), 5e-6 + 7 * tile_time(4096));
  EXPECT_DOUBLE_EQ(time_of(device, {1, 1, 4096}), 5e-6 + tile_time(4096));
}

TEST(GemmTime, DepthFillsRowsOfSharedMemory) {
  const Device device = tiled_device();
  EXPECT_DOUBLE_EQ(time_of(device, {128, 128, 1}), 5e-6 + tile_time(64));  // 128 bytes of bf16
  EXPECT_DOUBLE_EQ(time_of(device, {128, 128, 65}), 5e-6 + tile_time(128));
}

TEST(GemmTime, TheSmallerTileIsTakenWhereItFillsTheLastWave) {
  Device device = tiled_device();
  gemm_of(device).tiles = {{256, 128}, {128, 128}};
  // 101 tiles of 256 x 128 take two waves of two units; 202 of 128 x 128 three waves of one.
  EXPECT_DOUBLE_EQ(time_of(device, {256, 101 * 128, 4096}), 5e-6 + 3 * tile_time(4096));
  EXPECT_EQ(cut_of(device, {256, 101 * 128, 4096}).tile, (GemmTile{128, 128}));
  EXPECT_EQ(cut_of(device, {256, 100 * 128, 4096}).tile, (GemmTile{256, 128}));
}

TEST(GemmTime, FewDeepTilesAreSplit) {
  Device device = tiled_device();
  gemm_of(device).split = 1e-6;
  gemm_of(device).store = 8e12;
  // 10 tiles, each in 8 parts of 2048: 80 on 100 multiprocessors. Partial sums: 8 bytes for 8 parts of 1280 x 128, at 8e12 / s.
  const Seconds drain = 128.0 * 128 * 2 * 100 / 8e12, sums = 8.0 * 8 * 1280 * 128 / 8e12;
  EXPECT_EQ(cut_of(device, {1280, 128, 16384}).split, 8);
  EXPECT_NEAR(time_of(device, {1280, 128, 16384}), 5e-6 + tile_time(2048) + drain + 1e-6 + sums, 1e-15);
  EXPECT_EQ(cut_of(device, {1280, 1280, 16384}).split, 1);  // they are enough as they are
}

TEST(GemmTime, ResultsDrainAfterTheLastWaveAndHalfOfThemBefore) {
  Device device = tiled_device();
  gemm_of(device).store = 1e12;
  const Seconds drain = 128.0 * 128 * 2 * 100 / 1e12;
  EXPECT_NEAR(time_of(device, {1280, 1280, 4096}), 5e-6 + tile_time(4096) + drain, 1e-15);
  EXPECT_NEAR(time_of(device, {1280, 1280, 4096}, 3), 5e-6 + 3 * tile_time(4096) + 2 * drain, 1e-15);
  EXPECT_NEAR(time_of(device, {1280, 1280, 4096}, 1, {DType::bf16, DType::f32, true}), 5e-6 + tile_time(4096) + 4 * drain, 1e-15);
}

// Tensor cores have half of bf16's rate for operands of twice its size: in TF32 everything but the launch takes twice as long.
TEST(GemmTime, ProductsInTf32TakeTwiceAsLongAsInBf16) {
  Device device = tiled_device();
  EXPECT_FALSE(is_tiled(device, DType::f32));
  device.efficiency.tf32 = true;
  EXPECT_TRUE(is_tiled(device, DType::f32));
  const GemmTypes tf32{.operands = DType::f32, .result = DType::bf16};
  for (const GemmSize size : {GemmSize{1280, 1280, 4096}, GemmSize{128, 101 * 128, 4096}, GemmSize{4096, 256, 7168}}) {
    const Seconds in_bf16 = time_of(device, size), in_tf32 = time_of(device, size, 1, tf32);
    EXPECT_NEAR(in_tf32 - 5e-6, 2 * (in_bf16 - 5e-6), 1e-15);
    OpCost cost;
    cost.flops = 2.0 * static_cast<double>(size.m) * static_cast<double>(size.n) * static_cast<double>(size.k);
    cost.math = DType::f32;
    EXPECT_LE(kernel_lower_bound(device, cost), in_tf32);
  }
}

TEST(GemmTime, NarrowTilesWaitForTheirOperands) {
  Device device = tiled_device();
  gemm_of(device).tiles = {{64, 64}};
  gemm_of(device).feed = 1e11;  // 256 bytes for each step of the depth: 2.56 ns; its products take 8192 / 5e12 = 1.64 ns
  EXPECT_DOUBLE_EQ(time_of(device, {640, 640, 4096}), 5e-6 + 4096 * 256 / 1e11);
  gemm_of(device).feed = 2e11;
  EXPECT_DOUBLE_EQ(time_of(device, {640, 640, 4096}), 5e-6 + 4096 * 8192 / 5e12);
}

TEST(GemmTime, BytesBindThinProducts) {
  Device device = tiled_device();
  device.memory_bandwidth = 2e12;
  device.efficiency.memory = 0.5;
  const double bytes = 2.0 * (128 * 128 + 128 * 1e6 + 128 * 1e6);
  EXPECT_DOUBLE_EQ(time_of(device, {128, 1'000'000, 128}), 5e-6 + bytes / 1e12);
}

TEST(GemmTime, PowerSlowsProductsAndNothingElse) {
  Device device = tiled_device();
  gemm_of(device).sustained = 0.8;
  EXPECT_DOUBLE_EQ(time_of(device, {1280, 1280, 4096}), 5e-6 + tile_time(4096) / 0.8);
  EXPECT_DOUBLE_EQ(time_of(device, {1280, 1280, 4096}, 1, {}, Clock::burst), 5e-6 + tile_time(4096));
}

// The tensor cores read scales beside the operands; results, launch and what multiprocessors are fed with stay.
TEST(GemmTime, ScalesOfBlocksSlowProductsDown) {
  Device device = tiled_device();
  const DType f8 = DType::f8;
  device.peak[static_cast<std::size_t>(f8)] = device.peak[static_cast<std::size_t>(DType::bf16)];
  device.efficiency.gemm[static_cast<std::size_t>(f8)] = gemm_of(device);
  device.efficiency.gemm[static_cast<std::size_t>(f8)].block_scaled = 0.8;
  const auto time_with = [&](Scaling scaling) {
    return kernel_time(device,
                       {OpKind::gemm,
                        {{Shape(1280, 4096), f8, scaling}, {Shape(1280, 4096), f8, scaling}, {Shape(1280, 1280), DType::bf16}},
                        GemmAttributes{.transpose_b = true}});
  };
  EXPECT_DOUBLE_EQ(time_with(Scaling::tensor), 5e-6 + tile_time(4096));
  EXPECT_DOUBLE_EQ(time_with(Scaling::blocks_32), 5e-6 + tile_time(4096) / 0.8);
}

TEST(GemmTime, ExpertsShareOneKernelsWaves) {
  const Device device = tiled_device();
  TimedKernel grouped{OpKind::grouped_gemm,
                      {{Shape(300, 4096), DType::bf16}, {Shape(4 * 1280, 4096), DType::bf16}, {Shape(300, 1280), DType::bf16}},
                      GroupedGemmAttributes{.transpose_b = true, .rows = {129, 0, 43, 128}}};
  // 2 + 0 + 1 + 1 rows of 10 tiles in one wave
  EXPECT_DOUBLE_EQ(kernel_time(device, grouped), 5e-6 + tile_time(4096));
}

// Each expert leaves most of a wave empty, which no stream fills: one wave each for 20, 10 and 10 tiles.
TEST(GemmTime, ExpertsOnStreamsTakeAWaveEach) {
  const Device device = tiled_device();
  TimedKernel grouped{OpKind::grouped_gemm,
                      {{Shape(300, 4096), DType::bf16}, {Shape(4 * 1280, 4096), DType::bf16}, {Shape(300, 1280), DType::bf16}},
                      GroupedGemmAttributes{.transpose_b = true, .rows = {129, 0, 43, 128}}};
  Software software;
  EXPECT_EQ(kernels_of(software, grouped.op, grouped.attributes), 1);
  software.kernel_per_expert = {OpKind::grouped_gemm};
  const std::int64_t kernels = kernels_of(software, grouped.op, grouped.attributes);
  EXPECT_EQ(kernels, 3);  // one expert has no rows
  EXPECT_NEAR(kernel_time(device, grouped, kernels), 5e-6 + 3 * tile_time(4096), 1e-15);
}

TEST(GemmTime, EachProductOnStreamsTakesWhatStreamsDoNotHide) {
  Device device = tiled_device();
  const GemmBatch products[] = {{{300, 1280, 4096}, 2}, {{0, 1280, 4096}, 5}, {{43, 1280, 4096}, 1}};
  const Seconds without = gemm_time_on_streams(device, products, {}), one_kernel = gemm_time(device, products, {});
  gemm_of(device).on_stream = 4e-6;
  EXPECT_NEAR(gemm_time_on_streams(device, products, {}), without + 3 * 4e-6, 1e-15);
  EXPECT_EQ(gemm_time(device, products, {}), one_kernel);
}

TEST(GemmTime, ExpertsOnStreamsThatFillTheirWavesTakeAsLongAsOneKernel) {
  Device device = tiled_device();
  const GemmBatch full{{1280, 1280, 4096}, 6};
  EXPECT_NEAR(gemm_time_on_streams(device, {&full, 1}, {}), gemm_time(device, {&full, 1}, {}), 1e-15);
  // With writes, but for the last of the one kernel, of which nothing hides the other half.
  gemm_of(device).store = 1e12;
  const Seconds drain = 128.0 * 128 * 2 * 100 / 1e12;
  EXPECT_NEAR(gemm_time_on_streams(device, {&full, 1}, {}) + drain / 2, gemm_time(device, {&full, 1}, {}), 1e-15);
}

TEST(GemmTime, TheKernelSaysWhatIsMultiplied) {
  const TimedKernel forward = gemm(300, 200, 100);
  EXPECT_EQ(products_of(forward).at(0).size, (GemmSize{300, 200, 100}));
  TimedKernel weights{OpKind::gemm,
                      {{Shape(512, 300), DType::bf16}, {Shape(512, 200), DType::bf16}, {Shape(300, 200), DType::f32}},
                      GemmAttributes{.transpose_a = true, .accumulate = true}};
  EXPECT_EQ(products_of(weights).at(0).size, (GemmSize{300, 200, 512}));
  EXPECT_TRUE(types_of(weights).accumulate);
  EXPECT_EQ(types_of(weights).result, DType::f32);
}

TEST(GemmTime, ADeviceWithoutTilesHasARoofline) {
  Device device = tiled_device();
  device.multiprocessors = 0;
  const TimedKernel kernel = gemm(1280, 1280, 4096);
  EXPECT_THROW(time_of(device, {1280, 1280, 4096}), std::logic_error);
  EXPECT_DOUBLE_EQ(kernel_time(device, kernel), 2e-6 + cost_of(kernel).flops / 0.5e15);
}

Device random_device(std::mt19937& random) {
  const auto between = [&](double low, double high) { return std::uniform_real_distribution(low, high)(random); };
  Device device = tiled_device();
  device.multiprocessors = std::uniform_int_distribution(1, 200)(random);
  device.memory_bandwidth = between(1e12, 1e13);
  device.efficiency.memory = between(0.3, 1);
  gemm_of(device) = {.rate = between(0.1, 1),
                     .sustained = between(0.5, 1),
                     .feed = between(1e10, 3e11),
                     .store = between(5e11, 1e13),
                     .launch = between(0, 1e-5),
                     .split = between(0, 3e-6),
                     .tiles = {{64, 64}, {64, 256}, {128, 128}, {128, 192}, {256, 128}}};
  return device;
}

TEST(GemmTime, NeverFallsAsAProductGrowsNorBelowItsBound) {
  std::mt19937 random(7);
  const auto size = [&] { return static_cast<std::int64_t>(std::exp(std::uniform_real_distribution(0.0, 9.5)(random))); };
  for (int i = 0; i < 2000; ++i) {
    const Device device = random_device(random);
    const TimedKernel kernel = gemm(size(), size(), size());
    const GemmSize smaller = products_of(kernel).at(0).size;
    const Seconds time = kernel_time(device, kernel);
    ASSERT_GE(time, kernel_lower_bound(device, cost_of(kernel)));
    GemmSize larger = smaller;
    (i % 3 == 0 ? larger.m : i % 3 == 1 ? larger.n : larger.k) += size();
    ASSERT_GE(time_of(device, larger), time) << smaller.m << ' ' << smaller.n << ' ' << smaller.k;
    ASSERT_GE(time_of(device, smaller, 2), time);
  }
}

}  // namespace
}  // namespace tandem::sim::gemm_cost_test
