#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/spec/scenario.h"
#include "studies/crosscheck/comparison.h"
#include "studies/kineto/rank_step.h"

namespace tandem::studies {

/// All tasks of one kind, per rank: the mean over the ranks that were traced.
struct KindAgainstSimulation {
  std::string name;
  double simulated_count = 0, measured_count = 0;
  SimulatedAndMeasured time;
  /// Where a rank has as many of them as simulated: the median of |simulated / measured - 1| of the i-th of one and of the other.
  std::optional<double> by_order;
};

struct PartAgainstSimulation {
  std::string name;
  SimulatedAndMeasured time;
};

/// A real training step, traced by torch.profiler on some ranks, held against the simulation of those ranks.
struct AgainstSimulation {
  std::string scenario;
  std::vector<std::uint32_t> ranks;  ///< that were traced
  std::int64_t world_size = 0;
  std::string device, step;  ///< of the first trace
  SimulatedAndMeasured step_time;
  std::vector<PartAgainstSimulation> parts;  ///< add up to the step time
  std::vector<KindAgainstSimulation> kinds;  ///< most measured time first
  std::vector<KindSum> other_kernels;        ///< the largest of those that frameworks fuse in ways of their own; of all ranks
  std::vector<std::string> notes;            ///< what was assumed, and what is missing
};

/// Simulates the scenario and compares. Communication gets its axis by the group that PyTorch recorded: the axis whose
/// communicator of that rank has members at the same distances, and runs the same operation; without a record, the one axis that
/// runs it. `step`: the number of the ProfilerStep; without it a typical one of each trace (`step_of`). Throws InputError where
/// the traces are not of as many ranks as the scenario has.
AgainstSimulation against_simulation(const Scenario& scenario, const std::vector<KinetoTrace>& traces,
                                     std::optional<std::int64_t> step);

/// Returns the keys that docs/json.md lists under "A measured step".
nlohmann::ordered_json to_json_object(const AgainstSimulation& comparison);

}  // namespace tandem::studies
