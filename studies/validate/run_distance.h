#pragma once

#include <string>
#include <vector>

#include "studies/validate/run_scenario.h"
#include "studies/validate/runs_file.h"

namespace tandem::studies {

/// Something in which two runs are not alike.
struct RunDifference {
  std::string what;         ///< "gpus", "parameters", "framework"
  std::string here, there;  ///< in the one run and in the other
  double distance = 0;
};

/// A run with its scenario.
struct PlacedRun {
  const RunRow* row = nullptr;
  const Scenario* scenario = nullptr;
};

/// Returns what two runs differ in, what matters most first. A number counts by how often the one must be doubled to reach the
/// other: once for GPUs, parameters and tokens of a sequence, half for tokens of a step per GPU and for each degree of
/// parallelism. Another generation of GPUs counts 3, another GPU 1, another framework 1, experts 3, another precision 2; another
/// cell of a column that both tell, such as `recompute`, up to 1.
std::vector<RunDifference> differences_of(const PlacedRun& here, const PlacedRun& there);

/// Returns the sum of their distances: 0 for runs that are alike in all that counts.
double distance_of(const std::vector<RunDifference>& differences);

}  // namespace tandem::studies
