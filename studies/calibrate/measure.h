#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "studies/calibrate/bench.h"
#include "studies/calibrate/kernel_plan.h"

namespace tandem::studies {

/// The kernels to measure, in this order. `swept` holds too many for most budgets: they are taken in a random order (of fixed
/// seed), so that the kernels that are reached cover all of them evenly.
struct CalibrationPlan {
  std::vector<TimedKernel> probes;     ///< see `add_probes`
  std::vector<TimedKernel> requested;  ///< by --scenario and --shapes: each of them, as long as there is time
  std::vector<TimedKernel> swept;
};

struct Calibration {
  Profile profile;
  std::size_t too_long = 0;               ///< kernels of the sweep that would have taken too much of the budget
  std::size_t unreached = 0;              ///< kernels for which no time was left
  std::size_t requested_unreached = 0;    ///< of these, requested ones
  std::size_t collectives_unreached = 0;  ///< collectives for which no time was left
  std::size_t failed = 0;
  std::string first_failure;
};

/// Called now and then with what is being measured, the share of it that is done, and the seconds that are left where known.
using OnMeasuring = std::function<void(const std::string& what, double share, std::optional<Seconds> left)>;

/// Measures kernels within about `budget` seconds from now. The requested kernels get seven tenths of the time that the probes
/// leave, the sweep gets the rest. Within each group every kernel gets an equal share of time and as many samples as fit into it.
/// A kernel of the sweep that would take more than a hundredth of the budget, judged by the probes, is left out.
Calibration measure(const CalibrationBench& bench, const CalibrationPlan& plan, Seconds budget, const OnMeasuring& told = {});

/// Adds measured collectives. Counts those without samples as unreached.
void add_collectives(const std::vector<MeasuredCollective>& collectives, Calibration& calibration);

}  // namespace tandem::studies
