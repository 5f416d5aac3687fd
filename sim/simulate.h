#pragma once

#include "runtime/dag.h"
#include "runtime/timeline.h"

namespace tandem {

/// What a simulation cost, beside what it found.
struct SimulationRun {
  Timeline timeline;
  Seconds wall = 0;
  Bytes peak_rss = 0;
};

/// Replays `dag` on SimGrid through the executor and returns when each task ran, in simulated seconds.
///
/// The simulation runs in a forked child (SimGrid allows one engine per process), so it may be called any number of times, also
/// one after the other from different threads. Equal DAGs give equal timelines to the last bit.
/// Throws std::runtime_error when the child dies, and whatever sentence it died with.
SimulationRun simulate(const Dag& dag);

}  // namespace tandem
