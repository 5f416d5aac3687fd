#pragma once

#include <map>
#include <optional>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"
#include "scenarios/mesh/world.h"
#include "studies/step/exact_units.h"

namespace tandem::studies {

struct RunTime {
  Seconds start = 0, end = 0;
};

/// Tasks of an exact fold, and when they run.
using RunTimes = std::map<ExactTask, RunTime>;

/// `dag` was lowered on the fold `even`, and `timeline` is its simulation. Returns what of the exact fold runs at other times
/// than the even fold says. Nothing where so much does that it is as well to simulate the exact fold, or where CPUs issue
/// kernels, which is not followed.
///
/// The exact step is simulated, but for what runs as in the even one: that begins and ends when it did there. A unit (a kernel, a
/// collective, a transfer) is taken up where something tells it from the even fold's:
///
/// - a flow, when its max-min fair rate among all flows in the air, on the links of the exact fold, is another;
/// - a kernel, when what runs beside it on its rank slows it otherwise;
/// - any unit, when all that it waits for has ended and its start in the even fold is yet to come; or when that comes and
/// something
///   that it waits for runs on.
///
/// From then on it is simulated by the rules of sim/simgrid_backend.h: flows move their bytes at their rates, which change
/// whenever a flow of either kind begins or ends; kernels work at the speed that communication leaves them; a unit starts when
/// the last that it waits for has ended. Streams need no care, for their order is in the graph.
///
/// Why that is the exact step: rates, speeds and starts at any date follow from what ran before it, so only one set of times
/// obeys all rules. The times returned obey them because they were simulated, those of the timeline because whatever decides on
/// them is as in the even step: else the unit would have been taken up. Rates are worked out at each event at which trees or
/// taken up flows are in the air, or a taken up flow is missing, among all that these share links with; where nothing of that is,
/// the links of a class are crossed alike, as in any fold.
std::optional<RunTimes> replay_exactly(const World& exact, const World& even, const Dag& dag, const Timeline& timeline);

}  // namespace tandem::studies
