#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/analysis/memory.h"
#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"

namespace tandem {

/// What a rank holds from `at` on until the next point.
struct MemoryPoint {
  Seconds at = 0;
  Bytes activations = 0;
  Bytes buffers = 0;  ///< communication buffers and inputs

  Bytes bytes() const { return activations + buffers; }
};

/// All that was alive at the peak and first written by tasks of one name; "inputs"; what the "framework" keeps, and what "CUDA
/// graphs" hold.
struct MemoryHolder {
  std::string name;
  Bytes bytes = 0;
};

/// A rank's memory over the step. What stays allocated throughout is in `use`; its peak is that of `points`.
struct MemoryOverTime {
  MemoryUse use;
  std::int32_t stage = 0;             ///< the rank's own, or one that it stands for
  TaskId peak_task = no_id;           ///< whose start allocated most at the peak; no_id where nothing ever is
  std::vector<MemoryPoint> points;    ///< a step function: the first point is at 0, the last value holds until the step's end
  std::vector<MemoryHolder> largest;  ///< activations, communication buffers and inputs at the peak, most bytes first
};

/// Says how much to tell of each rank.
struct MemoryDetail {
  std::size_t points = 400;  ///< at most; 4 at least
  std::size_t holders = 8;   ///< at most
};

/// Tells the memory over time of one rank at a time: several threads may ask. Where a rank's memory changes more often than there
/// are points, the step is cut into bins of equal time, and the fullest and the last moment of each bin remain.
class MemoriesOverTime {
 public:
  /// `changes` must outlive this.
  explicit MemoriesOverTime(const MemoryChanges& changes, const MemoryDetail& detail = {}) : changes_(changes), detail_(detail) {}
  /// `of_rank`: the changes of the rank that `use` is of.
  MemoryOverTime of(const MemoryUse& use, std::vector<MemoryChange> of_rank) const;

 private:
  const MemoryChanges& changes_;
  const MemoryDetail detail_;
};

/// Returns the memory of some ranks of the DAG over time.
std::vector<MemoryOverTime> memory_over_time(const Dag& dag, const Timeline& timeline, const std::vector<RankIndex>& ranks,
                                             const MemoryDetail& detail = {});

}  // namespace tandem
