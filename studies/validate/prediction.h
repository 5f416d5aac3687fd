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

/// The predicted step of a run.
struct Prediction {
  Seconds step_time = 0;  ///< the median of the scenarios that count
  ErrorParts expected{};  ///< of the typical scenario; what the plausible ones differ by is among what is unknown
  Interval interval;      ///< as wide as the scenarios that count are apart, at least
  SimulatedRun typical;   ///< the one nearest to the median
  bool fits = true;       ///< whether any scenario fits into memory
  std::vector<std::string> notes;
};

/// Predicts a run from the scenarios that count. A run that was measured did fit, so scenarios that don't fit count only where
/// none fits, which a note then says. Nobody recomputes everything without need: where `recompute` was assumed, full
/// recomputation counts only if nothing less fits, and then of as few layers as do. `runs` holds at least one.
Prediction predict(std::vector<SimulatedRun> runs);

}  // namespace tandem::studies
