#pragma once

#include <string>
#include <vector>

#include "studies/validate/runs_file.h"
#include "studies/validate/validated_row.h"

namespace tandem::studies {

/// Measured runs and what was predicted of them before, without simulating anew.
struct ScoredRuns {
  std::vector<RunRow> rows;
  std::vector<ValidatedRow> validated;  ///< in the same order; with the id, source, marks and step times alone
};

/// Joins a table of runs with a table of the columns `id`, `measured_step_time_s` and `predicted_step_time_s`, such as
/// bench/accuracy/runs.scored.csv. Leaves out runs that have no row there, or no time in it. Throws InputError as load_runs, and
/// where the second table lacks a column or has an id that the first has not.
ScoredRuns join_scored_runs(const std::string& runs_file, const std::string& scored_file);

}  // namespace tandem::studies
