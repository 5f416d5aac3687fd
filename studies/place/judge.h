#pragma once

#include <vector>

#include "studies/place/placed_job.h"
#include "studies/runner/results_database.h"
#include "studies/runner/run_progress.h"

namespace tandem::studies {

/// Simulates the job on each of the placements of which `database` has no result, `jobs` at once, and stores each outcome as soon
/// as it is known. Returns the outcomes in the order of the placements. Throws std::runtime_error where the database fails or a
/// signal ends the simulations; all that had ended are stored.
std::vector<StepOutcome> judge_placements(const PlacedJob& job, const std::vector<NodeOfBlock>& placements,
                                          ResultsDatabase& database, std::size_t jobs, const OnRunProgress& told = {});

}  // namespace tandem::studies
