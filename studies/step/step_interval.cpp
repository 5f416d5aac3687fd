#include "studies/step/step_interval.h"

#include <array>
#include <cmath>

#include "runtime/ops/operation_named.h"

namespace tandem::studies {
namespace {

constexpr double error_of_gemm = 0.05, error_of_attention = 0.04, error_of_memory = 0.10, error_of_communication = 0.20;
constexpr double error_of_framework = 0.06, error_with_experts = 0.12;

/// Returns null for communication.
const Operation* kernel_named(std::string_view name) {
  const auto kind = operation_named(name);
  return kind && !is_communication(*kind) ? &operation(*kind) : nullptr;
}

double error_of(OpClass op_class) {
  switch (op_class) {
    case OpClass::gemm:
      return error_of_gemm;
    case OpClass::attention_forward:
    case OpClass::attention_backward:
      return error_of_attention;
    case OpClass::memory:
    case OpClass::communication:
      break;
  }
  return error_of_memory;
}

}  // namespace

Interval step_interval(const StepResult& result) {
  std::array<Seconds, 3> off{};  // of products, attention, other kernels: what they may be off by
  Seconds kernels = 0;
  bool has_experts = false;
  for (const KindTime& kind : result.kinds) {
    const Operation* kernel = kernel_named(kind.name);
    if (kernel == nullptr) continue;
    kernels += kind.time;
    has_experts = has_experts || kind.name == operation(OpKind::route).name;
    const auto part = kernel->op_class == OpClass::gemm ? 0U : kernel->op_class == OpClass::memory ? 2U : 1U;
    off[part] += kind.time * error_of(kernel->op_class);
  }
  Seconds exposed = 0;
  for (const Seconds axis : result.parts.exposed) exposed += axis;
  const double waiting = kernels > 0 ? 1 + result.parts.bubble / kernels : 1;
  const double framework = (has_experts ? error_with_experts : error_of_framework) * result.step_time;
  double variance = std::pow(exposed * error_of_communication, 2) + std::pow(framework, 2);
  for (const Seconds part : off) variance += std::pow(part * waiting, 2);
  const double width = result.step_time > 0 ? std::exp(nine_in_ten * std::sqrt(variance) / result.step_time) : 1;
  return {result.step_time / width, result.step_time * width};
}

}  // namespace tandem::studies
