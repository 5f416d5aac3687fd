#include "studies/step/relieved_flows.h"

#include <algorithm>
#include <optional>

#include "studies/step/exact_replay.h"

namespace tandem::studies {

bool relief_is_absorbed(const World& exact, const World& even, const Dag& dag, const Timeline& timeline) {
  constexpr double rounding = 1e-11;
  const std::optional<RunTimes> others = replay_exactly(exact, even, dag, timeline);
  if (!others) return false;
  const Seconds makespan = timeline.makespan();
  if (std::ranges::any_of(*others, [&](const auto& other) { return other.second.end > makespan * (1 + rounding); })) return false;
  const auto ends_last = [&](const ExactTask& task) {
    const auto found = others->find(task);
    return (found == others->end() ? timeline.end[task.task] : found->second.end) >= makespan * (1 - rounding);
  };
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (timeline.end[id] < makespan * (1 - rounding)) continue;
    for (RankIndex rank = 0; rank < exact.ranks.size(); ++rank)
      if (even.class_of[exact.ranks[rank].world_rank] == dag.tasks[id].rank && ends_last({rank, id})) return true;
  }
  return false;
}

}  // namespace tandem::studies
