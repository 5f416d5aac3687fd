#include "sim/kernel_cost.h"

#include <algorithm>
#include <ranges>
#include <stdexcept>
#include <string>

#include "sim/attention_cost.h"
#include "sim/gemm_cost.h"

namespace tandem::sim {
namespace {

double arithmetic_efficiency(const KernelEfficiency& efficiency, OpClass op_class, DType math) {
  const GemmEfficiency& gemm = efficiency.gemm[static_cast<std::size_t>(math)];
  switch (op_class) {
    case OpClass::gemm:
      return gemm.rate * gemm.sustained;
    case OpClass::scan:
      return gemm.rate * gemm.sustained;
    case OpClass::attention_forward:
      return efficiency.attention_forward;
    case OpClass::attention_backward:
      return efficiency.attention_backward;
    case OpClass::memory:
      return 1;  // memory-bound: the arithmetic roof is there for completeness, and nobody fits an efficiency to it
    case OpClass::communication:
      break;
  }
  throw std::logic_error("communication has no kernel time");
}

bool permutes_rows(OpKind op) {
  return op == OpKind::permute || op == OpKind::permute_backward || op == OpKind::combine || op == OpKind::combine_backward ||
         op == OpKind::regroup;
}

bool narrows(const TimedKernel& kernel) {
  const auto* cast = std::get_if<CastAttributes>(&kernel.attributes);
  return cast != nullptr && cast->to != NarrowType::none;
}

bool scans_state(OpKind op) {
  return op == OpKind::ssd_scan || op == OpKind::ssd_scan_backward || op == OpKind::delta_rule ||
         op == OpKind::delta_rule_backward || op == OpKind::lightning_attention || op == OpKind::lightning_attention_backward;
}

bool is_loss(OpKind op) {
  return op == OpKind::cross_entropy_max || op == OpKind::cross_entropy_sum || op == OpKind::cross_entropy_backward;
}

/// Elements a second of kernels that load them one at a time.
double element_rate(const Device& device, BytesPerSecond memory) {
  constexpr double read_and_written = 4;  // bytes of an element in 16 bits
  const double rate = device.efficiency.element_rate * device.multiprocessors;
  return rate > 0 ? rate : memory / read_and_written;
}

Seconds time_on(const Device& device, const Roofline& roofline, const OpCost& cost) {
  try {
    return roofline.time(cost) / device.speed;
  } catch (const std::logic_error& lack) {
    throw std::logic_error(device.name + " has " + lack.what());
  }
}

}  // namespace

Seconds Roofline::computing(const OpCost& cost) const {
  if (cost.flops > 0 && !(arithmetic > 0))
    throw std::logic_error("no speed for " + std::string(name_of(cost.math)) + " arithmetic");
  return cost.flops > 0 ? cost.flops / arithmetic : 0;
}

Seconds Roofline::moving(const OpCost& cost) const {
  if (cost.bytes > 0 && !(memory > 0)) throw std::logic_error("no memory bandwidth");
  return cost.bytes > 0 ? static_cast<double>(cost.bytes) / memory : 0;
}

Seconds Roofline::time(const OpCost& cost) const { return launch + std::max(computing(cost), moving(cost)); }

Roofline roofline_of(const Device& device, OpClass op_class, DType math) {
  const bool has_own_launch = op_class == OpClass::gemm && is_tiled(device, math);
  const auto like = static_cast<std::size_t>(computed_like(device, math));
  return {.launch = has_own_launch ? device.efficiency.gemm[like].launch : device.efficiency.launch,
          .arithmetic = device.peak[static_cast<std::size_t>(math)] * arithmetic_efficiency(device.efficiency, op_class, math),
          .memory = device.memory_bandwidth * device.efficiency.memory};
}

std::int64_t kernels_of(const Software& software, OpKind op, const OpAttributes& attributes) {
  if (operation(op).kernels > 1) return operation(op).kernels;
  const std::vector<OpKind>& apart = software.kernel_per_expert;
  if (std::ranges::find(apart, op) == apart.end()) return 1;
  if (const auto* cast = std::get_if<CastAttributes>(&attributes)) return std::max<std::int64_t>(1, std::ssize(cast->rows));
  const auto* products = std::get_if<GroupedGemmAttributes>(&attributes);
  const auto has_rows = [](std::int32_t rows) { return rows > 0; };
  return products == nullptr ? 1 : std::max<std::int64_t>(1, std::ranges::count_if(products->rows, has_rows));
}

Seconds kernel_time(const Device& device, const TimedKernel& kernel, std::int64_t kernels) {
  const OpClass op_class = operation(kernel.op).op_class;
  const bool is_attention = op_class == OpClass::attention_forward || op_class == OpClass::attention_backward;
  const DType type = kernel.operands.at(0).dtype;
  if (op_class == OpClass::gemm && is_tiled(device, type))
    return (kernels > 1 ? gemm_time_on_streams : gemm_time)(device, products_of(kernel), types_of(kernel), Clock::sustained) /
           device.speed;
  const bool is_sparse = std::holds_alternative<SparseAttentionAttributes>(kernel.attributes);
  const bool is_fused_kernel = device.efficiency.attention_kernel != AttentionKernel::unfused;
  if (is_attention && states_attention(device, type) && (is_fused_kernel || !is_sparse))
    return attention_time(device, kernel) / device.speed;
  if (operation(kernel.op).parts != nullptr) {
    const double reached = scans_state(kernel.op) ? device.efficiency.scan : 1;
    Seconds sum = 0;
    for (const OpCost& part : operation(kernel.op).parts(kernel.operands, kernel.attributes)) {
      Roofline roofline = roofline_of(device, op_class, part.math);
      roofline.memory *= reached;
      roofline.arithmetic *= reached;
      sum += time_on(device, roofline, part);
    }
    return sum;
  }
  const OpCost cost = cost_of(kernel);
  Roofline roofline = roofline_of(device, op_class, cost.math);
  roofline.launch *= static_cast<double>(kernels);
  if (works_on_scores(kernel.op)) roofline.memory *= device.efficiency.unfused;
  if (permutes_rows(kernel.op)) roofline.memory *= device.efficiency.permute;
  if (narrows(kernel)) roofline.memory *= device.efficiency.cast;
  if (is_loss(kernel.op)) roofline.memory *= device.efficiency.cross_entropy;
  return time_on(device, roofline, cost);
}

Seconds extra_time(const Device& device, const ExtraWork& extra, const TimedKernel& kernel, std::int64_t kernels) {
  if (extra == ExtraWork{}) return 0;
  const auto* cast = std::get_if<CastAttributes>(&kernel.attributes);
  if (cast != nullptr && (cast->in_place || cast->alone)) return 0;
  const auto elements = [](const OperandType& operand) { return operand.shape.elements(); };
  const bool is_product = operation(kernel.op).op_class == OpClass::gemm;
  const std::int64_t counted =
      is_product ? elements(kernel.operands.back()) : std::ranges::max(kernel.operands | std::views::transform(elements));
  const BytesPerSecond memory = device.efficiency.memory * device.memory_bandwidth;
  const BytesPerSecond reached = memory * (narrows(kernel) ? device.efficiency.cast : 1);
  const double launched = extra.kernels * static_cast<double>(kernels);
  const Seconds each = extra.bytes / reached + extra.by_element / element_rate(device, memory);
  return (launched * device.efficiency.launch + each * static_cast<double>(counted)) / device.speed;
}

Seconds kernel_lower_bound(const Device& device, const OpCost& cost) {
  const FlopsPerSecond peak = std::max(device.peak[static_cast<std::size_t>(cost.math)], product_peak(device, cost.math));
  const Roofline peaks{0, peak, device.memory_bandwidth};
  return time_on(device, peaks, cost);
}

}  // namespace tandem::sim
