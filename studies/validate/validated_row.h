#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "studies/runner/run_progress.h"
#include "studies/runner/step_pool.h"
#include "studies/validate/measured_memory.h"
#include "studies/validate/prediction.h"
#include "studies/validate/runs_file.h"

namespace tandem::studies {

/// A measured run beside its prediction.
struct ValidatedRow {
  std::string id, source, framework, gpu;
  bool moe = false;
  bool core = false;
  std::optional<Seconds> measured;
  MeasuredMemory memory;
  std::optional<Prediction> prediction;  ///< absent where `reason` says why
  std::string reason;
  std::vector<std::string> notes;
  double tokens_per_gpu = 0;  ///< tokens of a step per GPU

  /// Returns predicted / measured - 1.
  std::optional<double> error() const;
};

/// Simulates the plausible scenarios of all runs, equal scenarios only once. A
/// row that cannot be simulated does not stop the others. All GPUs are those of `site`, where it is known. Throws
/// std::runtime_error where a signal ends the work.
std::vector<ValidatedRow> validate_rows(std::span<const RunRow> rows, StepWorkers workers, const OnRunProgress& told = {},
                                        const Site& site = {});

}  // namespace tandem::studies
