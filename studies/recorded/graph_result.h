#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/analysis/kinds.h"
#include "runtime/analysis/overlap.h"
#include "runtime/analysis/time_parts.h"
#include "sim/simulate.h"

namespace tandem::studies {

/// What a DAG out of a file took when it was simulated as it stands. Of the model, its tokens and its memory such a file may tell
/// nothing, so that there is no StepResult.
struct GraphResult {
  std::string name;
  std::int64_t gpus = 0;
  std::string gpu;
  Seconds step_time = 0;
  Seconds lower_bound = 0;  ///< the kernels of a rank one after the other with nothing beside them, or sim/bounds.h's where more
  Seconds upper_bound = 0;  ///< see sim/bounds.h
  TimeParts parts;          ///< the mean over all ranks
  CommunicationOverlap overlap;
  std::vector<KindTime> kinds;  ///< most time first
  std::size_t rank_classes = 0, link_classes = 0, tasks = 0;
  Seconds wall = 0;
};

/// A DAG, when its tasks ran, and what that sums up to.
struct SimulatedGraph {
  Dag dag;
  Timeline timeline;
  GraphResult result;
};

/// Simulates the DAG of a file (traces/dag_file.h). Throws InputError where the file is none, or its tasks wait for each other.
SimulatedGraph simulate_graph(const std::string& path);
SimulatedGraph simulate_graph(Dag dag);

/// Returns the keys that docs/json.md lists under "A graph".
nlohmann::ordered_json to_json_object(const GraphResult& result);

}  // namespace tandem::studies
