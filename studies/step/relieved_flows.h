#pragma once

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"
#include "scenarios/mesh/world.h"

namespace tandem::studies {

using scenarios::World;

/// A step was folded as if every link were loaded as the fullest of its class by trees (`even`, see make_world), lowered and
/// simulated. In truth a tree's roots send less than its other members, and `exact` is the fold that tells them apart. Returns
/// whether the exact step has the same step time, because it is the same step but for some tasks that run at other times, and
/// what comes last is none of them.
///
/// These are found by exact_replay.h. A flow that shares links with a relieved tree ends earlier; what waits for it on its rank
/// starts earlier, and so do collectives whose last members are all ahead. A transfer may reach a rank early and take
/// multiprocessors from its kernels, which then end later. All that dies out where something waits for another that is as before.
/// Where it does not die out, or ends the step at another time, the answer is no; and where CPUs issue kernels, for what these do
/// earlier is not followed.
bool relief_is_absorbed(const World& exact, const World& even, const Dag& dag, const Timeline& timeline);

}  // namespace tandem::studies
