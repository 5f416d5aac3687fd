#include "sim/kernel_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tandem::sim {

KernelModel::KernelModel(const Device& device) : fitted_(device, device.measured), speed_(device.speed) {
  std::map<KernelFamily, std::vector<MeasuredKernel>> by_family;
  for (const MeasuredKernel& measured : device.measured) {
    measured_[key_of(measured.kernel)] = measured.timing.median;
    const auto is_nothing = [](double size) { return size <= 0; };
    if (std::ranges::none_of(size_of(measured.kernel), is_nothing)) by_family[family_of(measured.kernel)].push_back(measured);
  }
  for (const auto& [key, kernels] : by_family) {
    Family& family = families_[key];
    family.roofline = fitted_.roofline_of_family(kernels);
    for (const MeasuredKernel& measured : kernels) family.points.push_back({size_of(measured.kernel), measured.timing.median});
  }
}

Seconds KernelModel::time(const TimedKernel& kernel) const {
  const KernelKey key = key_of(kernel);
  if (const auto measured = measured_.find(key); measured != measured_.end()) return measured->second / speed_;
  const auto [known, is_new] = known_.try_emplace(key);
  if (is_new) known->second = unmeasured(kernel);
  return known->second / speed_;
}

std::optional<Seconds> KernelModel::measured(const TimedKernel& kernel) const {
  const auto found = measured_.find(key_of(kernel));
  return found == measured_.end() ? std::nullopt : std::optional(found->second / speed_);
}

Roofline KernelModel::roofline(const TimedKernel& kernel) const {
  const auto family = families_.find(family_of(kernel));
  if (family != families_.end()) return family->second.roofline;
  return fitted_.roofline(operation(kernel.op).op_class, cost_of(kernel).math);
}

Seconds KernelModel::unmeasured(const TimedKernel& kernel) const {
  const auto family = families_.find(family_of(kernel));
  if (family != families_.end()) return interpolated(family->second, kernel);
  if (operation(kernel.op).parts == nullptr) return roofline(kernel).time(cost_of(kernel));
  Seconds sum = 0;
  for (const OpCost& part : operation(kernel.op).parts(kernel.operands, kernel.attributes)) sum += roofline(kernel).time(part);
  return sum;
}

Seconds KernelModel::interpolated(const Family& family, const TimedKernel& kernel) {
  const std::vector<double> size = size_of(kernel);
  Seconds lower = 0, upper = std::numeric_limits<Seconds>::infinity();
  for (const Point& point : family.points) {
    double part = 1, times = 1;
    for (std::size_t d = 0; d < size.size(); ++d) {
      const double ratio = size[d] / point.size[d];
      part *= std::min(1.0, ratio);
      times *= std::max(1.0, ratio);
    }
    lower = std::max(lower, point.time * part);
    upper = std::min(upper, point.time * times);
  }
  if (lower > upper) return std::sqrt(lower * upper);
  return std::clamp(family.roofline.time(cost_of(kernel)), lower, upper);
}

}  // namespace tandem::sim
