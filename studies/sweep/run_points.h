#pragma once

#include <vector>

#include "studies/runner/results_database.h"
#include "studies/runner/run_progress.h"
#include "studies/runner/step_pool.h"
#include "studies/sweep/point.h"

namespace tandem::studies {

/// The rows of the points that were asked for, in the study's order, and how many of them were there before.
struct SweptPoints {
  std::vector<PointRow> rows;
  std::size_t kept = 0;
};

/// Simulates those of `points` of which the database has no result, and stores each as soon as it ends. Throws std::runtime_error
/// where the database fails, or where a signal ends the sweep, after the running simulations were killed; all that had ended are
/// stored.
SweptPoints run_points(const Study& study, const std::vector<PointId>& points, ResultsDatabase& database, StepWorkers workers,
                       const OnRunProgress& told = {});

}  // namespace tandem::studies
