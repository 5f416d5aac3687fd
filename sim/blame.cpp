#include "sim/blame.h"

#include <algorithm>
#include <array>
#include <functional>

#include "runtime/analysis/time_parts.h"
#include "sim/bottleneck.h"

namespace tandem::sim {
namespace {

/// The time that tasks take, summed over all ranks of the world.
struct TimeByThing {
  std::array<Seconds, op_kind_count> kernels{};
  std::array<Seconds, axis_count> axes{};
  std::array<Seconds, tier_count> tiers{};
  std::vector<Seconds> compute;  ///< by rank of the DAG, of that one alone
};

TimeByThing add_up(const Dag& dag, const Timeline& timeline) {
  TimeByThing sums;
  sums.compute.assign(dag.ranks.size(), 0);
  Bottlenecks bottlenecks(dag);
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    const Seconds time = timeline.times(id) * timeline.duration(id), on_all = time * dag.ranks[task.rank].count;
    if (!is_communication(task.op)) {
      sums.kernels[static_cast<std::size_t>(task.op)] += on_all;
      sums.compute[task.rank] += time;
      continue;
    }
    sums.axes[static_cast<std::size_t>(dag.communicator_of(task).axis)] += on_all;
    if (const auto tier = bottlenecks.tier_of(task)) sums.tiers[static_cast<std::size_t>(*tier)] += on_all;
  }
  return sums;
}

std::array<bool, tier_count> crossed_tiers(const Dag& dag) {
  std::array<bool, tier_count> crossed{};
  for (const Communicator& communicator : dag.communicators) {
    for (const Paths& paths : communicator.layout.paths) {
      for (const Crossing& crossing : paths.crossings) crossed[static_cast<std::size_t>(dag.links[crossing.link].tier)] = true;
    }
  }
  return crossed;
}

struct Candidate {
  Speedup speedup;
  Seconds time = 0;
};

/// Speeds the slowest stage up, and its mirror where one stands for both. Its gain counts on all ranks, as if all were like that
/// stage's.
std::optional<Candidate> slowest_stage(const Dag& dag, const std::vector<Seconds>& compute, double ranks, double factor) {
  if (compute.empty()) return std::nullopt;
  const auto longest = std::ranges::max_element(compute) - compute.begin();
  const std::int32_t number = dag.ranks[static_cast<std::size_t>(longest)].pp;
  const bool has_mirror = std::ranges::any_of(dag.ranks, [](const Rank& rank) { return rank.mirrored > 0; });
  const PipelineStage stage{number, has_mirror ? dag.info.stages - 1 - number : number};
  if (std::ranges::all_of(dag.ranks, [&](const Rank& rank) { return stage.holds(rank.pp); })) return std::nullopt;
  return Candidate{{stage, factor}, compute[static_cast<std::size_t>(longest)] * ranks};
}

}  // namespace

std::vector<Speedup> blame_candidates(const Dag& dag, const Timeline& timeline, const BlameEffort& effort) {
  constexpr double least_share = 0.005;
  const Seconds step = timeline.makespan();
  double ranks = 0;
  for (const Rank& rank : dag.ranks) ranks += rank.count;
  const TimeByThing sums = add_up(dag, timeline);

  std::vector<Candidate> all;
  if (const auto stage = slowest_stage(dag, sums.compute, ranks, effort.factor)) all.push_back(*stage);
  for (std::size_t op = 0; op < op_kind_count; ++op) {
    if (sums.kernels[op] > 0 && sums.kernels[op] >= least_share * step * ranks)
      all.push_back({{static_cast<OpKind>(op), effort.factor}, sums.kernels[op]});
  }
  for (std::size_t axis = 0; axis < axis_count; ++axis) {
    if (sums.axes[axis] > 0) all.push_back({{static_cast<Axis>(axis), effort.factor}, sums.axes[axis]});
  }
  const std::array<bool, tier_count> crossed = crossed_tiers(dag);
  for (std::size_t tier = 0; tier < tier_count; ++tier) {
    if (crossed[tier]) all.push_back({{static_cast<Tier>(tier), effort.factor}, sums.tiers[tier]});
  }
  std::ranges::stable_sort(all, std::greater<>(), &Candidate::time);

  const std::size_t affordable = effort.tasks / std::max<std::size_t>(1, dag.tasks.size());
  const std::size_t count = std::min(effort.most, std::max(effort.fewest, affordable));
  std::vector<Speedup> speedups;
  for (std::size_t i = 0; i < std::min(count, all.size()); ++i) speedups.push_back(all[i].speedup);
  return speedups;
}

std::vector<Blame> blame(const Dag& dag, const Timeline& timeline, std::span<const Speedup> speedups,
                         std::span<const Seconds> makespans) {
  const double steps = dag.info.steps;
  const Seconds without = timeline.makespan();
  std::vector<Blame> all;
  for (std::size_t i = 0; i < speedups.size(); ++i)
    all.push_back({speedups[i], makespans[i] / steps, (without - makespans[i]) / steps});
  std::ranges::stable_sort(all, std::greater<>(), &Blame::gained);
  return all;
}

}  // namespace tandem::sim
