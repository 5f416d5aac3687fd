// What of a sweep is measured, on timers that only compute.
#include "studies/calibrate/measure.h"

#include <gtest/gtest.h>

#include "tests/sim/measured_kernels.h"

namespace tandem::studies::measure_test {
namespace {

constexpr double rate = 1e12;  // FLOP/s, and bytes/s

/// Its choice among algorithms makes products run far more often than copies.
class TimerWithTrials final : public KernelTimer {
 public:
  Timing time(const TimedKernel& kernel, Seconds) override {
    const OpCost cost = cost_of(kernel);
    const Seconds time = std::max(cost.flops, static_cast<double>(cost.bytes)) / rate;
    return {time, time, time, 5};
  }
  int fewest_runs(const TimedKernel& kernel) const override { return kernel.op == OpKind::gemm ? 98 : 8; }
};

class NamedGpu final : public Gpu {
 public:
  GpuInfo info() const override { return {.name = "a GPU", .versions = "none", .memory = Bytes{1} << 36, .multiprocessors = 4}; }
  std::unique_ptr<GpuStep> make_step(const Dag&, const GpuStepOptions&) override { return nullptr; }
  std::unique_ptr<KernelTimer> make_kernel_timer() override { return std::make_unique<TimerWithTrials>(); }
};

// A product of 1024^3 and a copy of 2^28 numbers both take 2.1 ms. With two more for filling the operands, the copy takes 10
// runs, 21 ms, and the product 100, 215 ms: more than a hundredth of 10 s.
TEST(Measurement, LeavesOutKernelsByTheRunsOfEach) {
  const CalibrationBench bench = open_gpu_bench(std::make_unique<NamedGpu>());
  const std::vector<TimedKernel> probes{sim::gemm(256, 256, 256), sim::copy_of(1 << 14), sim::copy_of(1 << 22)};
  const auto swept = [&](Seconds budget) {
    Calibration calibration = measure(
        bench, {.probes = probes, .requested = {}, .swept = {sim::gemm(1024, 1024, 1024), sim::copy_of(1 << 28)}}, budget);
    EXPECT_EQ(calibration.profile.kernels.size() + calibration.too_long, 5U);
    return calibration;
  };
  const Calibration calibration = swept(10);
  EXPECT_EQ(calibration.too_long, 1U);
  EXPECT_EQ(calibration.profile.kernels.back().kernel.op, OpKind::scale);
  EXPECT_EQ(swept(30).too_long, 0U);
  EXPECT_EQ(swept(1).too_long, 2U);
}

TEST(Measurement, OfGpusHasNoGridsInFp32) {
  const CalibrationBench bench = open_gpu_bench(std::make_unique<NamedGpu>());
  EXPECT_EQ(bench.grids, std::vector{DType::bf16});
  KernelPlan plan(bench.memory);
  add_grids(bench.grids, plan);
  EXPECT_FALSE(plan.kernels().empty());
  for (const TimedKernel& kernel : plan.kernels()) EXPECT_EQ(kernel.operands.front().dtype, DType::bf16);
}

}  // namespace
}  // namespace tandem::studies::measure_test
