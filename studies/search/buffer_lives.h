#pragma once

#include <vector>

#include "runtime/dag/dag.h"

namespace tandem::studies {

/// Between two kernels of its rank a buffer is there whatever the times: the first that touches it, and the last that does or
/// that ends before some communication which does. `no_id` where no kernel touches it.
struct BufferLife {
  TaskId first = no_id, last = no_id;
};

/// Returns the lives of a rank's buffers, by buffer; views have none. `order`: the DAG's units, each after all that it waits for.
/// Kernels of a rank run one after the other, in the order of their numbers.
std::vector<BufferLife> buffer_lives(const Dag& dag, const std::vector<TaskId>& order, RankIndex rank);

}  // namespace tandem::studies
