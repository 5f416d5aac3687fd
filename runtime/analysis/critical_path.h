#pragma once

#include <string>
#include <vector>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"

namespace tandem {

/// A piece of the critical path: a task, or a wait with nothing to blame in the DAG.
struct PathSegment {
  TaskId task = no_id;  ///< no_id: a wait
  /// The pipeline stage that the path goes through: the task's rank may stand for its mirror, too. That of a wait is the last
  /// task's before it.
  std::int32_t stage = 0;
  Seconds start = 0;
  Seconds end = 0;
};

/// The chain of tasks and waits that the makespan is made of, in time's order: the first segment begins at 0, each of the others
/// where the one before it ends, the last ends with the task that ends last.
///
/// It is walked from that task backwards. Before a task comes the predecessor that ended last, before a collective that of any of
/// its members; of those that ended at once, the first. Where the task started later than that, the time between
/// is a wait (a launch, jitter). Where it was measured to start earlier, as a collective's kernel does that waits on the GPU for
/// the others, it counts from its predecessor's end on.
///
/// Where ranks stand for two stages that mirror each other, a message leads from one stage to the next, through a rank that may
/// be both. The last task is on its rank's own stage.
///
/// Where a stretch of the timeline repeats itself, the path is that of the step, and goes through the stretch as often.
std::vector<PathSegment> critical_path(const Dag& dag, const Timeline& timeline);

/// "gemm forward", "all_reduce (tp)", "wait".
std::string kind_of(const Dag& dag, const PathSegment& segment);

struct PathKind {
  std::string name;
  Seconds time = 0;
};

/// Most time first; adds up to the makespan.
std::vector<PathKind> sum_by_kind(const Dag& dag, const std::vector<PathSegment>& path);

}  // namespace tandem
