#include "studies/calibrate/measure.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <stdexcept>

#include "sim/kernel_fit.h"

namespace tandem::studies {
namespace {

using Clock = std::chrono::steady_clock;

class Measurement {
 public:
  Measurement(const CalibrationBench& bench, Seconds budget, std::size_t kernels, const OnMeasuring& told)
      : bench_(bench), budget_(budget), kernels_(kernels), told_(told) {
    result_.profile.origin = bench.origin;
  }

  /// The next `kernels` get `part` of the time that is left, in equal shares.
  void begin_phase(std::size_t kernels, double part) {
    constexpr Seconds least = 2e-3, most = 0.5;
    share_ = std::clamp(part * left() / static_cast<double>(std::max<std::size_t>(kernels, 1)), least, most);
  }

  void probe(const std::vector<TimedKernel>& kernels) {
    begin_phase(kernels.size(), part_of_probes);
    for (const TimedKernel& kernel : kernels) time(kernel);
    fit_.emplace(Device{}, result_.profile.kernels);
  }

  void take_requested(const std::vector<TimedKernel>& kernels) {
    begin_phase(kernels.size(), part_of_requested);
    for (const TimedKernel& kernel : kernels)
      if (!time(kernel)) ++result_.requested_unreached;
  }

  void sweep(std::vector<TimedKernel> kernels) {
    std::shuffle(kernels.begin(), kernels.end(), std::mt19937(1));
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const TimedKernel& kernel = kernels[i];
      begin_phase(kernels.size() - i, 1);
      if (takes_too_long(kernel)) {
        ++result_.too_long;
        ++done_;
      } else {
        time(kernel);
      }
    }
  }

  Calibration result() { return std::move(result_); }

 private:
  const CalibrationBench& bench_;
  Seconds budget_;
  std::size_t kernels_, done_ = 0;
  static constexpr double part_of_probes = 0.1, part_of_requested = 0.7;
  Seconds share_ = 0;  ///< of one kernel
  Clock::time_point begin_ = Clock::now();
  const OnMeasuring& told_;
  std::optional<FittedDevice> fit_;
  Calibration result_;

  Seconds left() const { return budget_ - std::chrono::duration<double>(Clock::now() - begin_).count(); }

  void show(const std::string& what) {
    if (told_) told_(what, 1 - left() / budget_, left());
  }

  /// False when there was no time.
  bool time(const TimedKernel& kernel) {
    ++done_;
    if (left() <= 0) {
      ++result_.unreached;
      return false;
    }
    show(fmt::format("{}/{} kernels, {}", done_, kernels_, operation(kernel.op).name));
    try {
      result_.profile.kernels.push_back({kernel, bench_.kernels->time(kernel, share_)});
    } catch (const std::runtime_error& error) {
      if (result_.failed++ == 0) result_.first_failure = std::string(operation(kernel.op).name) + ": " + error.what();
    }
    return true;
  }

  bool takes_too_long(const TimedKernel& kernel) const {
    constexpr double filling = 2, largest_part = 0.01;  // filling the operands takes as long as so many runs
    const double runs = bench_.kernels->fewest_runs(kernel) + filling;
    const OpCost cost = cost_of(kernel);
    const Roofline roofline = fit_->roofline(operation(kernel.op).op_class, cost.math);
    if ((cost.flops > 0 && roofline.arithmetic <= 0) || roofline.memory <= 0) return false;  // no probe of its kind could run
    return runs * roofline.time(cost) > largest_part * budget_;
  }
};

}  // namespace

Calibration measure(const CalibrationBench& bench, const CalibrationPlan& plan, Seconds budget, const OnMeasuring& told) {
  Measurement measurement(bench, budget, plan.probes.size() + plan.requested.size() + plan.swept.size(), told);
  measurement.probe(plan.probes);
  measurement.take_requested(plan.requested);
  measurement.sweep(plan.swept);
  return measurement.result();
}

void add_collectives(const std::vector<MeasuredCollective>& collectives, Calibration& calibration) {
  for (const MeasuredCollective& collective : collectives) {
    if (collective.timing.samples > 0) {
      calibration.profile.collectives.push_back(collective);
    } else {
      ++calibration.collectives_unreached;
    }
  }
}

}  // namespace tandem::studies
