#pragma once

#include <array>
#include <vector>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"

namespace tandem {

class Predecessors;

inline constexpr std::size_t axis_count = static_cast<std::size_t>(Axis::host) + 1;
inline constexpr std::size_t phase_count = static_cast<std::size_t>(Phase::optimizer) + 1;

/// Where a rank's step time goes; the parts add up to the step time.
///
/// While a kernel runs it is its phase's time: compute, or the optimizer's. Before each kernel that starts later than the one
/// before it ended, the gap belongs to what the kernel waited for, followed back from it: the time during which a communication
/// it waited for ran is that axis's exposed communication; what remains, the time in which that communication itself waited for
/// other ranks, is bubble. What the host computes counts as what is moved to it and back, on the axis `host`.
struct TimeParts {
  std::array<Seconds, phase_count> kernels{};
  Seconds bubble = 0;
  std::array<Seconds, axis_count> exposed{};

  Seconds total() const;
  /// Returns the compute time of all phases but the optimizer's.
  Seconds compute() const;
  Seconds optimizer() const { return in_phase(Phase::optimizer); }
  Seconds in_phase(Phase phase) const { return kernels[static_cast<std::size_t>(phase)]; }
  /// Adds so many times `other`, part by part.
  void add(const TimeParts& other, double times);
  Seconds exposed_on(Axis axis) const { return exposed[static_cast<std::size_t>(axis)]; }
};

/// Returns the parts of each rank of the DAG. `awaited`: see `awaited_by`.
std::vector<TimeParts> time_parts(const Dag& dag, const Timeline& timeline, const Predecessors& awaited);
std::vector<TimeParts> time_parts(const Dag& dag, const Timeline& timeline);

/// Returns the mean over all ranks of the world: each lowered rank counts as often as it stands for others.
TimeParts mean_over_ranks(const Dag& dag, const std::vector<TimeParts>& parts);

/// The mean over the ranks of a pipeline stage.
struct StageTime {
  std::int64_t ranks = 0;  ///< of the world
  TimeParts parts;
};

/// Returns the mean parts of each pipeline stage.
std::vector<StageTime> mean_by_stage(const Dag& dag, const std::vector<TimeParts>& parts);

}  // namespace tandem
