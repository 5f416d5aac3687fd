#pragma once

#include <functional>
#include <vector>

#include "runtime/dag/device.h"
#include "runtime/kernel_timer.h"

namespace tandem::sim {

inline TimedKernel gemm(std::int64_t m, std::int64_t n, std::int64_t k, DType type = DType::bf16) {
  return {OpKind::gemm, {{Shape(m, k), type}, {Shape(n, k), type}, {Shape(m, n), type}}, GemmAttributes{.transpose_b = true}};
}

inline TimedKernel copy_of(std::int64_t elements) {
  const OperandType type{Shape(elements), DType::f32};
  return {OpKind::scale, {type, type}, ScaleAttributes{}};
}

inline TimedKernel attention(std::int64_t sequence, std::int64_t heads, std::int64_t head_dim, bool causal = true) {
  const OperandType q{Shape(sequence, 1, heads, head_dim), DType::bf16}, lse{Shape(1, heads, sequence, 1), DType::f32};
  Positions all;
  all.length[0] = static_cast<std::int32_t>(sequence);
  return {OpKind::attention, {q, q, q, q, lse}, AttentionAttributes{.causal = causal, .queries = all, .keys = all}};
}

/// A timer that computes what it measures.
class FakeTimer final : public KernelTimer {
 public:
  explicit FakeTimer(std::function<Seconds(const OpCost&)> cost) : cost_(std::move(cost)) {}
  Timing time(const TimedKernel& kernel, Seconds) override {
    const Seconds time = cost_(cost_of(kernel));
    return {time, time, time, 1};
  }
  int fewest_runs(const TimedKernel&) const override { return 1; }

 private:
  std::function<Seconds(const OpCost&)> cost_;
};

inline Device measured_device(const std::vector<TimedKernel>& kernels, KernelTimer& timer) {
  Device device;
  device.name = "measured";
  device.memory_bandwidth = 2e12;
  device.efficiency.memory = 1;
  for (const TimedKernel& kernel : kernels) device.measured.push_back({kernel, timer.time(kernel, 0)});
  return device;
}

}  // namespace tandem::sim
