// The host's timers on every operation, and the operands they run on.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "runtime/host/collective_timer.h"
#include "runtime/host/kernel_timer.h"
#include "runtime/ops/operands.h"
#include "runtime/timed_operands.h"
#include "studies/calibrate/kernel_plan.h"

namespace tandem::studies::host_kernel_timer_test {
namespace {

/// Of each operation, the smallest kernel that `tandem calibrate` would measure.
std::map<OpKind, TimedKernel> smallest_by_operation() {
  KernelPlan plan(1'000'000'000);
  add_probes({DType::f32}, plan);
  add_memory_bound({DType::f32, DType::f8}, plan);
  add_presets({DType::f32}, 16, 60, plan);
  std::map<OpKind, TimedKernel> smallest;
  for (const TimedKernel& kernel : plan.kernels()) {
    const auto [known, is_new] = smallest.try_emplace(kernel.op, kernel);
    if (!is_new && cost_of(kernel).bytes < cost_of(known->second).bytes) known->second = kernel;
  }
  return smallest;
}

TEST(HostKernelTimer, TimesEveryOperation) {
  const std::unique_ptr<KernelTimer> timer = make_host_kernel_timer(1'000'000'000);
  const std::map<OpKind, TimedKernel> kernels = smallest_by_operation();
  for (std::size_t op = 0; !is_communication(static_cast<OpKind>(op)); ++op) {
    const auto kernel = kernels.find(static_cast<OpKind>(op));
    ASSERT_NE(kernel, kernels.end()) << operation(static_cast<OpKind>(op)).name;
    const Timing timing = timer->time(kernel->second, 0);
    EXPECT_GT(timing.lowest, 0) << operation(kernel->first).name;
    EXPECT_LE(timing.lowest, timing.median);
    EXPECT_LE(timing.median, timing.highest);
    EXPECT_GE(timing.samples, 5);
  }
}

TEST(HostKernelTimer, TakesMoreSamplesInMoreTime) {
  const std::unique_ptr<KernelTimer> timer = make_host_kernel_timer(1'000'000'000);
  const OperandType type{Shape(1 << 16), DType::f32};
  const TimedKernel kernel{OpKind::scale, {type, type}, ScaleAttributes{}};
  const auto begin = std::chrono::steady_clock::now();
  const Timing timing = timer->time(kernel, 0.2);
  EXPECT_GT(timing.samples, 5);
  EXPECT_GE(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), timing.samples < 2000 ? 0.2 : 0);
  // Sixteen times the elements take longer, whoever else uses the machine: the shortest of many runs.
  TimedKernel larger = kernel;
  for (OperandType& operand : larger.operands) operand.shape = Shape(1 << 20);
  EXPECT_GT(timer->time(larger, 0.2).lowest, timing.lowest);
}

TEST(HostKernelTimer, RefusesWhatDoesNotFit) {
  const OperandType type{Shape(1000), DType::f32};
  const TimedKernel kernel{OpKind::scale, {type, type}, ScaleAttributes{}};
  EXPECT_THROW(make_host_kernel_timer(7000)->time(kernel, 0), std::runtime_error);
  EXPECT_NO_THROW(make_host_kernel_timer(9000)->time(kernel, 0));
}

TEST(TimedOperands, AreSuchAsTheKernelCanFollow) {
  for (const auto& [op, kernel] : smallest_by_operation()) {
    const std::vector<std::vector<std::int32_t>> contents = integer_contents(kernel);
    ASSERT_EQ(contents.size(), kernel.operands.size());
    for (std::size_t i = 0; i < contents.size(); ++i) {
      if (contents[i].empty()) continue;
      EXPECT_EQ(kernel.operands[i].dtype, DType::i32) << operation(op).name;
      EXPECT_EQ(std::ssize(contents[i]), kernel.operands[i].shape.elements());
    }
  }
  const auto ids = integer_contents({OpKind::embedding,
                                     {{Shape(64, 2), DType::i32}, {Shape(50, 4), DType::f32}, {Shape(64, 2, 4), DType::f32}},
                                     EmbeddingAttributes{.vocab_start = 100}});
  EXPECT_EQ(std::ranges::min(ids[0]), 100);
  EXPECT_EQ(std::ranges::max(ids[0]), 149);
  EXPECT_GT(std::set<std::int32_t>(ids[0].begin(), ids[0].end()).size(), 40U);  // scattered, as tokens are
  const auto slots = integer_contents(
      {OpKind::permute, {{Shape(8, 4), DType::f32}, {Shape(8, 2), DType::i32}, {Shape(10, 4), DType::f32}}, std::monostate{}});
  EXPECT_EQ(std::ranges::count(slots[1], -1), 6);
  EXPECT_EQ(std::ranges::max(slots[1]), 9);
}

TEST(HostCollectives, AreTimedEachInItsPartOfTheBudget) {
  std::vector<MeasuredCollective> collectives = collectives_worth_measuring_on_host();
  std::set<std::int32_t> members;
  for (const MeasuredCollective& collective : collectives) members.insert(collective.members);
  EXPECT_EQ(members, (std::set<std::int32_t>{2, 4, 8}));

  constexpr Bytes small = 4096;
  std::erase_if(collectives, [](const MeasuredCollective& one) { return one.bytes != small || one.members == 8; });
  ASSERT_EQ(collectives.size(), 9U);  // four among two and among four, and a transfer
  std::size_t begun = 0;
  time_on_host(collectives, 2, [&](const MeasuredCollective&) { ++begun; });
  // A machine that is busy with something else has no time left for the last of them.
  ASSERT_GE(begun, 1U);
  ASSERT_LE(begun, collectives.size());
  for (std::size_t i = 0; i < begun; ++i) {
    EXPECT_GT(collectives[i].timing.lowest, 0) << operation(collectives[i].op).name;
    EXPECT_GE(collectives[i].timing.samples, 20);
  }
  for (std::size_t i = begun; i < collectives.size(); ++i) EXPECT_EQ(collectives[i].timing.samples, 0);
}

TEST(HostCollectives, OfWhichNoTimeIsLeftForKeepNoSamples) {
  std::vector<MeasuredCollective> collectives = collectives_worth_measuring_on_host();
  time_on_host(collectives, 0);
  EXPECT_GE(collectives.front().timing.samples, 20);
  for (std::size_t i = 1; i < collectives.size(); ++i) EXPECT_EQ(collectives[i].timing.samples, 0);
}

TEST(Timing, IsOfTheSortedSamples) {
  const Timing odd = timing_of({5, 1, 3});
  EXPECT_EQ(odd.median, 3);
  EXPECT_EQ(odd.lowest, 1);
  EXPECT_EQ(odd.highest, 5);
  EXPECT_EQ(timing_of({4, 1, 2, 3}).median, 2.5);
  EXPECT_THROW(timing_of({}), std::logic_error);
}

}  // namespace
}  // namespace tandem::studies::host_kernel_timer_test
