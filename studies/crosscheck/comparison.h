#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/analysis/overlap.h"
#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"

namespace tandem::studies {

/// One quantity, as simulated and as measured.
struct SimulatedAndMeasured {
  Seconds simulated = 0;
  Seconds measured = 0;

  /// Returns simulated / measured - 1; nothing where no time was measured to compare with.
  std::optional<double> error() const { return measured > 0 ? std::optional(simulated / measured - 1) : std::nullopt; }
};

/// All tasks of one operation, collectives by their axis.
struct KindComparison {
  std::string name;
  std::size_t count = 0;
  SimulatedAndMeasured time;
  double share = 0;  ///< of the measured time of all tasks
};

/// One communication stream, over all ranks that have it.
struct StreamComparison {
  Stream stream = Stream::tp;
  std::size_t ranks = 0;
  StreamOverlap simulated, measured;  ///< sums over the ranks
};

struct TaskComparison {
  TaskId task = 0;
  std::uint32_t rank = 0;  ///< of the world
  std::string name;
  SimulatedAndMeasured time;
};

struct RankOrder {
  std::uint32_t rank = 0;  ///< of the world
  std::size_t tasks = 0, streams = 0;
  bool same = true;
};

/// The peak of the fullest rank.
struct MemoryComparison {
  Bytes simulated = 0;            ///< by the buffers' lifetimes in the simulated order
  Bytes executed = 0;             ///< the same in the measured order
  std::optional<Bytes> measured;  ///< what the backend's memory held at most, where it can tell
};

/// The same DAG simulated and executed, held against each other.
struct Comparison {
  SimulatedAndMeasured step;              ///< time of one, of several the mean
  std::vector<KindComparison> kinds;      ///< most measured time first
  std::vector<StreamComparison> streams;  ///< in the order of `Stream`
  std::vector<TaskComparison> worst;      ///< the ten whose durations differ most, most first
  std::vector<RankOrder> orders;
  MemoryComparison memory;

  bool same_order() const;
};

/// Throws std::runtime_error, one sentence, where the simulated step time is further from the measured one than `most`, as a
/// fraction of that, or either is no time.
void refuse_larger_error(const Comparison& comparison, double most);

/// Throws std::runtime_error, one sentence with their names, where the simulated time of kinds of tasks is further from the
/// measured one than `most`, as a fraction of that. Kinds that take less than 1 % of the measured time of all tasks may be off.
void refuse_larger_kind_errors(const Comparison& comparison, double most);

/// Compares two timelines of one DAG. `peaks` says by rank of the DAG what the backend's memory held at most; empty where the
/// backend cannot tell.
Comparison compare(const Dag& dag, const Timeline& simulated, const Timeline& measured, const std::vector<Bytes>& peaks = {});

}  // namespace tandem::studies
