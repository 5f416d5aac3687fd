#pragma once

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"
#include "scenarios/mesh/world.h"

namespace tandem::studies {

using scenarios::World;

/// A step was folded as if every link were loaded as the fullest of its class by trees (`even`, see make_world), lowered and
/// simulated. In truth a tree's roots send less than its other members, and `exact` is the fold that tells them apart. Returns
/// whether the exact step has the same step time, because it is the same step but for a few tasks that are earlier:
///
/// 1. While a tree runs, the max-min fair rates of all flows in the air are worked out on the links of both folds. A flow that is
///    faster in `exact` ends earlier there. No flow may be slower, and without the faster ones every other has to keep its rate.
/// 2. What a rank does after a flow that ends earlier may be earlier, too: its kernels, until it comes to a collective or a
/// transfer.
///    There it must wait for another, which is not early and arrives when the collective starts. Then this starts when it did.
///
/// So a timeline in which those kernels and flows are earlier, and all else is as simulated, keeps every rule of the exact step.
/// Times of kernels that run beside a flow may shrink with it; a kernel that starts earlier never ends later.
bool relief_is_absorbed(const World& exact, const World& even, const Dag& dag, const Timeline& timeline);

}  // namespace tandem::studies
