#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "studies/runner/run_progress.h"
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
  std::optional<Prediction> prediction;  ///< none where `reason` says why not
  std::string reason;
  std::vector<std::string> notes;
  double tokens_per_gpu = 0;  ///< of a step

  /// predicted / measured - 1
  std::optional<double> error() const;
};

/// Simulates the plausible scenarios of all runs, `jobs` at once, each in a process of its own; those that are the same scenario
/// only once. One row that cannot be simulated leaves the others alone. Throws std::runtime_error where a
/// signal ends it.
std::vector<ValidatedRow> validate_rows(std::span<const RunRow> rows, std::size_t jobs, const OnRunProgress& told = {});

}  // namespace tandem::studies
