#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"
#include "runtime/executor.h"
#include "sim/speedup.h"
#include "sim/steady_state.h"

namespace tandem::sim {

/// The way in which a collective is played: as one flow (see collective_cost.h), or chunk by chunk (see chunk_steps.h).
enum class Collectives : std::uint8_t {
  fluid,
  steps
};
constexpr const char* name_of(Collectives collectives) { return collectives == Collectives::fluid ? "fluid" : "steps"; }

/// What a simulation found, and what it cost.
struct SimulationRun {
  Timeline timeline;
  Seconds wall = 0;
  Bytes peak_rss = 0;
};

/// Replays `dag` on SimGrid through the executor and returns when each task ran, in simulated seconds.
///
/// The simulation runs in a forked child (SimGrid allows one engine per process), so it may be called any number of times, also
/// one after the other from different threads. Equal DAGs give equal timelines to the last bit.
/// Steps are played where the DAG's layouts have hops; a DAG of all ranks may have them (`make_world`).
/// `progress` is told now and then which share of the tasks has ended. `beside` is done by this process meanwhile.
/// Throws std::runtime_error when the child dies, and whatever sentence it died with.
SimulationRun simulate(const Dag& dag, Collectives collectives = Collectives::fluid, const Speedup& speedup = {},
                       const std::function<void(double share)>& progress = {}, const std::function<void()>& beside = {});

/// Does the same in this process: for one that is itself somebody's child, as what kills it kills all, and that simulates nothing
/// afterwards, neither itself nor in children, as SimGrid's engine is used up. Neither memory nor a timeline need be copied then.
/// `ended`, where it is given, counts the tasks that have ended. `beside` is done by another thread from when all is prepared,
/// which takes several; or afterwards, where one thread may work.
SimulationRun simulate_here(const Dag& dag, Collectives collectives = Collectives::fluid, EndedTasks* ended = nullptr,
                            const std::function<void()>& beside = {});

/// Returns how long the DAG takes with each of `speedups`. Children simulate a few of them each, `jobs` children at a time.
std::vector<Seconds> makespans(const Dag& dag, std::span<const Speedup> speedups, std::size_t jobs,
                               Collectives collectives = Collectives::fluid);

/// Returns how long the step takes of which the DAG has all but some `periods`; NaN where what is left of it does not say
/// (steady_state.h).
std::vector<Seconds> makespans(const Dag& dag, const Periods& periods, std::span<const Speedup> speedups, std::size_t jobs);

}  // namespace tandem::sim
