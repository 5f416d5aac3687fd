#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "studies/runner/run_progress.h"
#include "studies/runner/step_pool.h"
#include "studies/validate/run_distance.h"
#include "studies/validate/runs_file.h"
#include "studies/validate/validated_row.h"

namespace tandem::studies {

/// Part of a predicted step.
struct ExplainedTime {
  std::string name;                    ///< a kind of kernel, over all phases; "exposed tp"; "bubble"
  std::optional<ErrorPart> part = {};  ///< what may be wrong about it; of the bubble, whatever may be about kernels
  Seconds time = 0;                    ///< all of them together are the step
  double off_by = 0;                   ///< what it may be off by in nine cases of ten, as a share of the step
};

/// Returns where the time of a simulated step goes, most time first, and by how much each could be wrong. Kernels share the time
/// in which kernels run as their durations tell. A part of the interval (`Interval::parts`) is divided among the kinds that it is
/// about by their time; the bubble adds to all kernels alike and has none of its own.
std::vector<ExplainedTime> explained_times(const StepResult& step, const Interval& interval);

/// The measured run that is most like another.
struct NearestRun {
  ValidatedRow row;
  std::vector<RunDifference> differences;  ///< what matters most first; none for a run that is alike
};

/// A run's prediction, taken apart.
struct ExplainedRun {
  ValidatedRow row;
  std::vector<ExplainedTime> times;   ///< of the typical scenario; empty where there is no prediction
  std::optional<NearestRun> nearest;  ///< that was simulated; absent where no other run was measured

  /// Returns the step times of this run over those of the nearest one; nothing where one of them is not known.
  std::optional<double> measured_ratio() const;
  std::optional<double> predicted_ratio() const;
  /// Returns the step time if the run were off as the nearest one is. Nothing without a nearest run.
  std::optional<Seconds> step_time_like_nearest() const;
};

/// Simulates the run `id` and the nearest measured one among the other rows. Throws InputError at the table where no row has that
/// id, else what `validate_rows` throws.
ExplainedRun explain_run(std::span<const RunRow> rows, const std::string& id, StepWorkers workers,
                         const OnRunProgress& told = {});

std::string to_json(const ExplainedRun& explained);

}  // namespace tandem::studies
