#pragma once

#include <string>
#include <vector>

#include "studies/place/placed_job.h"
#include "studies/runner/results_database.h"
#include "studies/runner/run_progress.h"

namespace tandem::studies {

/// What a simulation said of a placement.
struct PlacementJudgement {
  PointStatus status = PointStatus::failed;
  std::string message;  ///< of one that failed
  Seconds step_time = 0;
};

/// Simulates the job on each of the placements of which `database` has no result, `jobs` at once, and stores each as soon as it
/// ends. Throws std::runtime_error where the database fails or a signal ends it; all that had ended are stored.
std::vector<PlacementJudgement> judge_placements(const PlacedJob& job, const std::vector<NodeOfBlock>& placements,
                                                 ResultsDatabase& database, std::size_t jobs, const OnRunProgress& told = {});

}  // namespace tandem::studies
