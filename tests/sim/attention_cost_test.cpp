// Closed forms of fused and unfused attention, and what must hold for any parameters.
#include "sim/attention_cost.h"

#include <gtest/gtest.h>

#include <random>

#include "runtime/ops/attention.h"
#include "sim/gemm_cost.h"
#include "sim/kernel_cost.h"
#include "tests/sim/measured_kernels.h"
#include "tests/sim/tiled_device.h"

namespace tandem::sim::attention_cost_test {
namespace {

/// 500, 500 and 250 TFLOP/s at head dimensions 64, 128 and 256.
Device attending() {
  Device device = tiled_device();
  device.efficiency.attention_kernel = AttentionKernel::flash_2;
  const AttentionPass pass{.rate = {0.5, 0.5, 0.25}, .causal = 1, .tile = 0};
  device.efficiency.attention[static_cast<std::size_t>(AttentionKernel::flash_2)] = {pass, pass};
  return device;
}

AttentionPass& forward_of(Device& device) {
  return device.efficiency.attention[static_cast<std::size_t>(AttentionKernel::flash_2)].forward;
}

TimedKernel backward_of(const TimedKernel& forward) {
  TimedKernel backward = forward;
  backward.op = OpKind::attention_backward;
  const auto &q = forward.operands[0], &k = forward.operands[1], &v = forward.operands[2], &out = forward.operands[3];
  for (const OperandType& more : {out, q, k, v}) backward.operands.push_back(more);
  return backward;
}

/// 4 d FLOPs for each pair, of one tile of 128 queries, on one multiprocessor of 5 TFLOP/s.
Seconds tile_time(double keys, double dim = 128) { return 4 * dim * 128 * keys / 5e12; }

TEST(AttentionTime, UnmaskedTilesRunInWaves) {
  const Device device = attending();
  EXPECT_DOUBLE_EQ(attention_time(device, attention(1024, 12, 128, false)), 2e-6 + tile_time(1024));      // 96 tiles
  EXPECT_DOUBLE_EQ(attention_time(device, attention(1024, 13, 128, false)), 2e-6 + 2 * tile_time(1024));  // 104
  EXPECT_DOUBLE_EQ(attention_time(device, attention(1000, 12, 128, false)), 2e-6 + tile_time(1024));      // rounded up
  Device short_of_power = device;
  short_of_power.efficiency.attention_sustained = 0.8;
  EXPECT_DOUBLE_EQ(attention_time(short_of_power, attention(1024, 12, 128, false)), 2e-6 + tile_time(1024) / 0.8);
  EXPECT_DOUBLE_EQ(attention_time(short_of_power, attention(1024, 12, 128, false), Clock::burst), 2e-6 + tile_time(1024));
}

// At 1e15 FLOP/s a pair of F FLOPs takes 2 F, of which its products at 0.8 of the peak are 1.25 F; in fp8, at twice the peak,
// they are 0.625 F, and the remaining 0.75 F stay. With products as slow as all of it, the products alone remain.
TEST(AttentionTime, InFp8TheProductsAloneAreFaster) {
  Device device = attending();
  const auto fp8 = static_cast<std::size_t>(DType::f8);
  gemm_of(device).rate = 0.8;
  device.peak[fp8] = 2e15;
  device.efficiency.gemm[fp8].rate = 0.8;
  TimedKernel in_fp8 = attention(1024, 12, 128, false);
  for (std::size_t i = 0; i < 3; ++i) in_fp8.operands[i].dtype = DType::f8;
  EXPECT_DOUBLE_EQ(attention_time(device, in_fp8), 2e-6 + (0.75 + 0.625) / 2 * tile_time(1024));
  gemm_of(device).rate = 0.5;
  EXPECT_DOUBLE_EQ(attention_time(device, in_fp8), 2e-6 + 0.625 / 2 * tile_time(1024));
  EXPECT_GE(attention_time(device, in_fp8), kernel_lower_bound(device, cost_of(in_fp8)));
}

TEST(AttentionTime, ACausalMaskHalvesTheWorkAndLeavesTheDiagonal) {
  const Device device = attending();
  // 8 tiles a head that compute 1 to 8 squares of 128: their mean is 4.5. 800 tiles are 8 for each multiprocessor.
  const Seconds mean = tile_time(4.5 * 128);
  EXPECT_NEAR(attention_time(device, attention(1024, 100, 128)), 2e-6 + 8 * mean + mean / 2, 1e-12);
  // One head alone waits for its longest tile.
  EXPECT_NEAR(attention_time(device, attention(1024, 1, 128)), 2e-6 + tile_time(1024), 1e-12);
}

/// Of one sequence that is packed of so many documents of equal length.
TimedKernel packed(std::int64_t documents, std::int64_t tokens, std::int64_t heads, std::int64_t dim) {
  TimedKernel kernel = attention(documents * tokens, heads, dim);
  auto& attributes = std::get<AttentionAttributes>(kernel.attributes);
  attributes.documents.sequence = static_cast<std::int32_t>(documents * tokens);
  for (std::int64_t i = 0; i < documents; ++i) attributes.documents.starts.push_back(i * tokens);
  return kernel;
}

// Documents in one sequence take as long as so many sequences, whose heads are all alike.
TEST(AttentionTime, DocumentsAreShortSequences) {
  Device device = attending();
  forward_of(device).tile = 1e-6;
  for (const std::int64_t tokens : {64, 128, 1000, 1024}) {
    for (const std::int64_t heads : {1, 3, 40}) {
      const TimedKernel together = packed(4, tokens, heads, 128), apart = attention(tokens, 4 * heads, 128);
      EXPECT_DOUBLE_EQ(cost_of(together).flops, cost_of(apart).flops);
      EXPECT_NEAR(attention_time(device, together), attention_time(device, apart), 1e-12);
      EXPECT_NEAR(attention_time(device, backward_of(together)), attention_time(device, backward_of(apart)), 1e-12);
    }
  }
}

TEST(AttentionTime, TheLongestDocumentIsWaitedFor) {
  const Device device = attending();
  TimedKernel uneven = packed(2, 1024, 1, 128);
  std::get<AttentionAttributes>(uneven.attributes).documents.starts = {0, 256};
  EXPECT_NEAR(attention_time(device, uneven), 2e-6 + tile_time(1792), 1e-12);
}

TEST(AttentionTime, AMaskCanSlowWhatItLeaves) {
  Device device = attending();
  const Seconds whole = attention_time(device, attention(1024, 100, 128)),
                unmasked = attention_time(device, attention(1024, 100, 128, false));
  forward_of(device).causal = 0.8;
  EXPECT_NEAR(attention_time(device, attention(1024, 100, 128)) - 2e-6, (whole - 2e-6) / 0.8, 1e-12);
  EXPECT_DOUBLE_EQ(attention_time(device, attention(1024, 100, 128, false)), unmasked);
}

TEST(AttentionTime, ATileHasACostOfItsOwn) {
  Device device = attending();
  forward_of(device).tile = 1e-6;
  EXPECT_DOUBLE_EQ(attention_time(device, attention(1024, 12, 128, false)), 2e-6 + tile_time(1024) + 1e-6);
  EXPECT_DOUBLE_EQ(attention_time(device, attention(1024, 12, 64, false)), 2e-6 + tile_time(1024, 64) + 0.5e-6);
}

TEST(AttentionTime, TimeOfAPairIsStraightBetweenHeadDimensions) {
  const Device device = attending();
  const auto products = [&](std::int64_t dim) { return attention_time(device, attention(1024, 12, dim, false)) - 2e-6; };
  EXPECT_NEAR(products(64), tile_time(1024, 64), 1e-15);
  EXPECT_NEAR(products(256), 2 * tile_time(1024, 256), 1e-15);
  EXPECT_NEAR(products(192), (products(128) + products(256)) / 2, 1e-15);
  EXPECT_NEAR(products(32), products(64) / 2, 1e-15);
  EXPECT_NEAR(products(512), 2 * products(256), 1e-15);
}

TEST(AttentionTime, BackwardDoesFiveProductsForTwo) {
  const Device device = attending();
  const TimedKernel forward = attention(1024, 12, 128, false);
  EXPECT_DOUBLE_EQ(attention_time(device, backward_of(forward)), 2e-6 + 2.5 * tile_time(1024));
}

TEST(AttentionTime, UnfusedIsItsKernels) {
  Device device = attending();
  device.efficiency.attention_kernel = AttentionKernel::unfused;
  device.memory_bandwidth = 2e12;
  device.efficiency.memory = 0.5;
  const auto products = [&](const GemmSize& size) {
    const GemmBatch batch{size, 12};
    return gemm_time(device, {&batch, 1}, {});
  };
  const double scores = 12.0 * 1024 * 1024, seen = 12.0 * 1024 * 1025 / 2;
  const GemmSize wide{1024, 1024, 64}, deep{1024, 64, 1024};
  const Seconds softmax = 2e-6 + 2 * (seen + scores) / 1e12;
  const TimedKernel forward = attention(1024, 12, 64);
  EXPECT_NEAR(attention_time(device, forward), products(wide) + products(deep) + softmax, 1e-12);
  const Seconds softmax_backward = 2e-6 + 6 * scores / 1e12;
  EXPECT_NEAR(attention_time(device, backward_of(forward)), products(wide) + 3 * products(deep) + softmax_backward, 1e-12);
}

// Lowered by themselves, the kernels between the products move their bytes at `unfused` of the achieved bandwidth.
TEST(AttentionTime, KernelsOverScoresReachTheirShareOfTheBandwidth) {
  Device device = attending();
  device.memory_bandwidth = 2e12;
  device.efficiency.memory = 0.5;
  device.efficiency.unfused = 0.25;
  const Shape shape(3, 4, 1024, 1024);
  const double scores = 12.0 * 1024 * 1024, seen = 12.0 * 1024 * 1025 / 2;
  const OperandType p{shape, DType::bf16}, mask{shape, DType::u8}, numbers{Shape(1, 3), DType::i32};
  const Positions all{.start = {0, 0}, .length = {1024, 0}};
  const AttentionAttributes causal{.queries = all, .keys = all};
  const DropoutAttributes dropout{.probability = 0.1F, .rows = all};
  EXPECT_NEAR(kernel_time(device, {OpKind::softmax, {p, p}, causal}), 2e-6 + 2 * (seen + scores) / 0.25e12, 1e-12);
  EXPECT_NEAR(kernel_time(device, {OpKind::softmax_backward, {p, p, p}, causal}), 2e-6 + 6 * scores / 0.25e12, 1e-12);
  EXPECT_NEAR(kernel_time(device, {OpKind::dropout, {p, numbers, p, mask}, dropout}), 2e-6 + (5 * scores + 12) / 0.25e12, 1e-12);
  EXPECT_NEAR(kernel_time(device, {OpKind::dropout_backward, {p, mask, p}, dropout}), 2e-6 + 5 * scores / 0.25e12, 1e-12);
}

TEST(AttentionTime, ADeviceThatStatesNothingHasARoofline) {
  Device device = attending();
  device.efficiency.attention_kernel = AttentionKernel::cudnn;
  device.efficiency.attention_forward = 0.4;
  const TimedKernel kernel = attention(1024, 100, 128);
  EXPECT_FALSE(states_attention(device, DType::bf16));
  EXPECT_THROW(attention_time(device, kernel), std::logic_error);
  EXPECT_DOUBLE_EQ(kernel_time(device, kernel), 2e-6 + cost_of(kernel).flops / 0.4e15);
}

TEST(AttentionTime, NeverFallsAsItGrowsNorBelowItsBound) {
  std::mt19937 random(11);
  const auto between = [&](std::int64_t low, std::int64_t high) { return std::uniform_int_distribution(low, high)(random); };
  for (int i = 0; i < 2000; ++i) {
    Device device = attending();
    device.multiprocessors = static_cast<std::int32_t>(between(1, 200));
    device.memory_bandwidth = static_cast<double>(between(1, 10)) * 1e12;
    if (i % 4 == 0) device.efficiency.attention_kernel = AttentionKernel::unfused;
    const std::int64_t sequence = between(1, 3000), heads = between(1, 40), dim = between(1, 300);
    const bool causal = i % 2 == 0;
    const TimedKernel kernel = attention(sequence, heads, dim, causal);
    for (const TimedKernel& pass : {kernel, backward_of(kernel)})
      ASSERT_GE(kernel_time(device, pass), kernel_lower_bound(device, cost_of(pass)));
    const Seconds time = kernel_time(device, kernel);
    ASSERT_GE(kernel_time(device, attention(sequence + between(0, 500), heads, dim, causal)), time * (1 - 1e-12));
    ASSERT_GE(kernel_time(device, attention(sequence, heads + 1, dim, causal)), time * (1 - 1e-12));
    ASSERT_GE(kernel_time(device, attention(sequence, heads, dim + 1, causal)), time * (1 - 1e-12));
  }
}

/// So many tokens, each of which chooses 2,048 of the keys before it, of 128 elements that are values, too.
TimedKernel sparse(std::int64_t tokens, std::int64_t heads, bool backward = false) {
  constexpr std::int64_t chosen = 2048, dim = 128;
  const auto run_of = [](std::int64_t start, std::int64_t length) {
    return Positions{.start = {static_cast<std::int32_t>(start), 0}, .length = {static_cast<std::int32_t>(length), 0}};
  };
  const std::int64_t keys = chosen - 1 + tokens;
  const OperandType q{Shape(tokens, 1, heads, dim), DType::bf16}, k{Shape(keys, 1, 1, dim), DType::bf16};
  const OperandType numbers{Shape(1, tokens, chosen), DType::i32}, lse{Shape(1, heads, tokens), DType::f32};
  const SparseAttentionAttributes attributes{.queries = run_of(chosen - 1, tokens), .keys = run_of(0, keys)};
  if (backward) return {OpKind::sparse_attention_backward, {q, k, numbers, q, lse, q, q, k}, attributes};
  return {OpKind::sparse_attention, {q, k, numbers, q, lse}, attributes};
}

// A token is a tile: 64 rows of heads by 2,048 keys, of 2 (128 + 128) FLOPs each; 1,000 of them are 10 for each multiprocessor.
TEST(SparseAttentionTime, ATokensHeadsAreFilledUpToGroups) {
  const Device device = attending();
  const Seconds mean = 64 * 2048 * 512 / 5e12;
  for (const std::int64_t heads : {16, 64})
    EXPECT_NEAR(attention_time(device, sparse(1000, heads)), 2e-6 + 10.5 * mean, 1e-12) << heads;
  EXPECT_NEAR(attention_time(device, sparse(1000, 65)), 2e-6 + 10.5 * 2 * mean, 1e-12);
  EXPECT_NEAR(attention_time(device, sparse(1000, 64, true)), 2e-6 + 10.5 * 2.5 * mean, 1e-12);
  EXPECT_GE(attention_time(device, sparse(1000, 64)), kernel_lower_bound(device, cost_of(sparse(1000, 64))));
}

// Where the device's attention goes by steps, no kernel of it attends to chosen keys: the roofline remains.
TEST(SparseAttentionTime, IsARooflineBesideUnfusedAttention) {
  Device device = attending();
  device.efficiency.attention_kernel = AttentionKernel::unfused;
  device.efficiency.attention_forward = 0.4;
  const TimedKernel kernel = sparse(1000, 64);
  EXPECT_DOUBLE_EQ(kernel_time(device, kernel),
                   roofline_of(device, OpClass::attention_forward, DType::bf16).time(cost_of(kernel)) / device.speed);
}

}  // namespace
}  // namespace tandem::sim::attention_cost_test
