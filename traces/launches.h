#pragma once

#include <cstdint>
#include <vector>

#include "traces/spans.h"
#include "traces/trace.h"

namespace tandem::traces {

/// An operator of the CPU, in the middle of which a task is launched. In nanoseconds since the step began; before that where
/// kernels run from its beginning on.
struct CpuOperator {
  std::uint32_t span = 0;  ///< the task's
  std::int64_t start_ns = 0, end_ns = 0;

  std::int64_t launch_start_ns() const { return start_ns + (end_ns - start_ns) / 3; }
  std::int64_t launch_end_ns() const { return end_ns - (end_ns - start_ns) / 3; }
};

/// What a rank's CPU does in a step: one operator for each task, one after the other in the order in which tasks were lowered,
/// each at an end when its task starts. Where the source tells when tasks are issued (`TraceSource::issued`) these are the times;
/// elsewhere the CPU is ahead from the beginning on.
///
/// An operator lasts 3 us at least, and its launch a third of it: Holistic Trace Analysis rounds to whole microseconds inwards
/// (hta/common/trace_parser.py), and counts a queue's length from launches that come before their kernels.
class Launches {
 public:
  Launches(const TraceSource& source, const SourceSpans& spans);

  /// In the order in which they run.
  const std::vector<CpuOperator>& of(const RankTracks& rank) const { return of_rank_[rank.rank]; }
  /// By how much a trace has to be later so that nothing in it is before 0: whole microseconds.
  std::int64_t shift_ns() const { return shift_ns_; }

 private:
  std::vector<std::vector<CpuOperator>> of_rank_;  ///< by rank of the DAG
  std::int64_t shift_ns_ = 0;
};

}  // namespace tandem::traces
