#include "sim/kernel_cost.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace tandem {
namespace {

double arithmetic_efficiency(const KernelEfficiency& efficiency, OpClass op_class, DType math) {
  switch (op_class) {
    case OpClass::gemm:
      return efficiency.gemm[static_cast<std::size_t>(math)];
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

Seconds arithmetic_time(const Device& device, const OpCost& cost, double efficiency) {
  if (cost.flops == 0) return 0;
  const FlopsPerSecond rate = device.peak[static_cast<std::size_t>(cost.math)] * efficiency;
  if (!(rate > 0)) throw std::logic_error(device.name + " has no speed for " + std::string(name_of(cost.math)) + " arithmetic");
  return cost.flops / rate;
}

Seconds memory_time(const Device& device, const OpCost& cost, double efficiency) {
  if (cost.bytes == 0) return 0;
  const BytesPerSecond rate = device.memory_bandwidth * efficiency;
  if (!(rate > 0)) throw std::logic_error(device.name + " has no memory bandwidth");
  return static_cast<double>(cost.bytes) / rate;
}

}  // namespace

Seconds kernel_time(const Device& device, OpClass op_class, const OpCost& cost) {
  const KernelEfficiency& efficiency = device.efficiency;
  const Seconds arithmetic = arithmetic_time(device, cost, arithmetic_efficiency(efficiency, op_class, cost.math));
  return (efficiency.launch + std::max(arithmetic, memory_time(device, cost, efficiency.memory))) / device.speed;
}

Seconds kernel_lower_bound(const Device& device, const OpCost& cost) {
  return std::max(arithmetic_time(device, cost, 1), memory_time(device, cost, 1)) / device.speed;
}

}  // namespace tandem
