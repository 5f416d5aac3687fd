#pragma once

#include <vector>

#include "runtime/dag/dag.h"
#include "studies/search/small_step.h"

namespace tandem::studies {

/// A kernel that begins no sooner than so long after another's end.
struct KernelsApart {
  TaskId earlier = no_id, later = no_id;
  Seconds least = 0;
};

/// Returns for each exchange of experts' tokens on a rank how far the last kernel that it waits for and the first that waits for
/// it are apart at least: it runs between them, so that the kernels there lose to it what `least_loss` says, beside their time
/// alone and what they wait for.
std::vector<KernelsApart> kernels_apart(const Dag& dag, const IdlePaths& paths, RankIndex rank);

}  // namespace tandem::studies
