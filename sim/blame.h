#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"
#include "sim/speedup.h"

namespace tandem::sim {

/// The time that a step would gain from one thing being faster.
struct Blame {
  Speedup speedup;
  Seconds step_time = 0;  ///< with it
  Seconds gained = 0;     ///< step time without it, less that; can be negative, for who is first on a link changes
};

/// The work that may go into blame: each candidate is simulated, at the cost of the step itself. On one core of an AMD EPYC that
/// of llama3-405b-16k (83,088 tasks, 25,242 collectives) was 0.04 s, and that of deepseek-v3-2k (839,386 tasks, 46,847
/// collectives) 0.2 s (`tandem simulate --verbose`).
struct BlameEffort {
  double factor = 1.1;
  std::size_t most = 12;                     ///< simulations
  std::size_t tasks = std::size_t{1} << 20;  ///< over all simulations; from `fewest` on, fewer simulations of a larger DAG
  std::size_t fewest = 6;
};

/// Returns what to ask of a step, the most promising first, by the part of the step that it takes:
///   the slowest pipeline stage, where there are several: the one of the rank that computes longest
///   kinds of kernels that take at least 0.5 % of the step, in the mean over all ranks
///   axes with communication, by the time of their collectives, hidden or not, in the same mean
///   tiers that are crossed, by the time of the collectives that they limit (see bottleneck.h)
std::vector<Speedup> blame_candidates(const Dag& dag, const Timeline& timeline, const BlameEffort& effort = {});

/// Returns what the step of which `timeline` is the simulation gains by each of `speedups`, with which the DAG takes as long as
/// `makespans` says (simulate.h), the most gained first. For a multi-step DAG, times are those of one step.
std::vector<Blame> blame(const Dag& dag, const Timeline& timeline, std::span<const Speedup> speedups,
                         std::span<const Seconds> makespans);

}  // namespace tandem::sim
