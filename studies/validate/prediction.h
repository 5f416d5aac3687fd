#pragma once

#include <string>
#include <vector>

#include "runtime/base/units.h"
#include "studies/step/step_interval.h"
#include "studies/step/step_result.h"
#include "studies/validate/plausible.h"

namespace tandem::studies {

/// One of a run's plausible scenarios, simulated.
struct SimulatedRun {
  Assumptions assumed;
  bool to_fit = false;  ///< see PlausibleRun
  std::string yaml;
  StepResult step;

  bool fits() const { return step.fits(); }
  Seconds step_time() const { return step.step_time; }
};

/// What a run is predicted to take.
struct Prediction {
  Seconds step_time = 0;  ///< the median of the scenarios that count
  Interval interval;
  SimulatedRun typical;  ///< the one nearest to the median
  bool fits = true;      ///< whether any scenario does
  std::vector<std::string> notes;
};

/// Takes the scenarios that count. A run that was measured did fit, so where some fit only these do; where none fits all count,
/// and a note says so. Nobody recomputes all that need not: where `recompute` was assumed, full counts only if nothing less fits.
/// `runs`: at least one.
Prediction predict(std::vector<SimulatedRun> runs);

}  // namespace tandem::studies
