#include "sim/kernel_fit.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace tandem::sim {
namespace {

/// Returns the rate that `part` of the kernels stay below, among the third of them that do most work.
template <typename Work>
double rate_of_largest(std::span<const MeasuredKernel> kernels, Work work_of, Seconds launch, double part) {
  std::vector<std::pair<double, double>> rates;
  for (const auto& [kernel, timing] : kernels) {
    const double work = work_of(cost_of(kernel));
    // What a kernel little longer than a launch takes beyond it would be noise.
    rates.emplace_back(work, work / std::max(timing.median - launch, timing.median / 2));
  }
  std::ranges::sort(rates, std::greater<>());
  rates.resize((rates.size() + 2) / 3);
  const auto place = rates.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(rates.size()));
  std::ranges::nth_element(rates, place, {}, [](const auto& entry) { return entry.second; });
  return place->second;
}

}  // namespace

Roofline fitted_line(std::span<const MeasuredKernel> kernels) {
  // The squares of (launch + bytes slope) / t - 1 are least where their derivatives by launch and slope vanish.
  double uu = 0, ux = 0, xx = 0, u = 0, x = 0;
  for (const MeasuredKernel& measured : kernels) {
    const double of_launch = 1 / measured.timing.median;
    const double of_slope = static_cast<double>(cost_of(measured.kernel).bytes) * of_launch;
    uu += of_launch * of_launch;
    ux += of_launch * of_slope;
    xx += of_slope * of_slope;
    u += of_launch;
    x += of_slope;
  }
  constexpr double one_size = 1e-9;  // a share of the determinant that rounding leaves where all sizes are equal
  const double determinant = uu * xx - ux * ux;
  if (determinant > one_size * uu * xx) {
    const Seconds launch = (u * xx - x * ux) / determinant;
    const double slope = (uu * x - ux * u) / determinant;
    if (launch >= 0 && slope > 0) return {.launch = launch, .arithmetic = 0, .memory = 1 / slope};
  }
  return {.launch = 0, .arithmetic = 0, .memory = xx / x};
}

FlopsPerSecond fitted_rate(std::span<const MeasuredKernel> kernels, Seconds launch) {
  constexpr double upper_quartile = 0.75;
  return rate_of_largest(
      kernels, [](const OpCost& cost) { return cost.flops; }, launch, upper_quartile);
}

BytesPerSecond fitted_bandwidth(std::span<const MeasuredKernel> kernels, Seconds launch) {
  constexpr double median = 0.5;
  return rate_of_largest(
      kernels, [](const OpCost& cost) { return static_cast<double>(cost.bytes); }, launch, median);
}

FittedDevice::FittedDevice(const Device& stated, std::span<const MeasuredKernel> kernels) : stated_(stated) {
  stated_.measured.clear();
  std::vector<MeasuredKernel> moving;
  std::map<std::pair<OpClass, DType>, std::vector<MeasuredKernel>> products;
  for (const MeasuredKernel& measured : kernels) {
    const OpClass op_class = operation(measured.kernel.op).op_class;
    const OpCost cost = cost_of(measured.kernel);
    launch_ = launch_ ? std::min(*launch_, measured.timing.median) : measured.timing.median;
    if (op_class == OpClass::memory) {
      if (cost.bytes > 0) moving.push_back(measured);
    } else if (cost.flops > 0) {
      products[{op_class, cost.math}].push_back(measured);
    }
  }
  if (!moving.empty()) memory_ = fitted_bandwidth(moving, *launch_);
  for (const auto& [kind, of_kind] : products) rates_[kind] = fitted_rate(of_kind, *launch_);
}

Roofline FittedDevice::roofline(OpClass op_class, DType math) const {
  Roofline roofline = roofline_of(stated_, op_class, math);
  roofline.launch = launch_.value_or(roofline.launch);
  roofline.memory = memory_.value_or(roofline.memory);
  if (const auto rate = rates_.find({op_class, math}); rate != rates_.end()) roofline.arithmetic = rate->second;
  return roofline;
}

Roofline FittedDevice::roofline_of_family(std::span<const MeasuredKernel> kernels) const {
  const OpClass op_class = operation(kernels.front().kernel.op).op_class;
  if (op_class == OpClass::memory) return fitted_line(kernels);
  Roofline roofline = this->roofline(op_class, cost_of(kernels.front().kernel).math);
  roofline.arithmetic = fitted_rate(kernels, roofline.launch);
  const MeasuredKernel& shortest = *std::ranges::min_element(kernels, {}, [](const auto& k) { return k.timing.median; });
  constexpr double mostly_launch = 4;
  if (shortest.timing.median < mostly_launch * roofline.launch)
    roofline.launch = std::max(roofline.launch, shortest.timing.median - cost_of(shortest.kernel).flops / roofline.arithmetic);
  return roofline;
}

}  // namespace tandem::sim
