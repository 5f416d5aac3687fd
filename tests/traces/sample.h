#pragma once

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"

namespace tandem::traces {

struct Sample {
  Dag dag;
  Timeline timeline;
};

/// GEMMs on `stages` pipeline stages of `replicas` ranks each: forward and backward transfers per micro-batch, then an all-reduce
/// of the gradient per stage. World rank = stage * replicas + replica. Times are made up, with fractions of a nanosecond; they
/// respect every dependency, and the members of a group share theirs.
Sample pipeline_sample(int stages, int replicas, int micro_batches);

/// One GEMM [2,4] x [4,8] per entry on one rank's compute stream, at the given times.
Sample kernels_at(const std::vector<std::pair<Seconds, Seconds>>& times);

}  // namespace tandem::traces
