#include "traces/representative_ranks.h"

#include <algorithm>
#include <map>

namespace tandem::traces {
namespace {

constexpr std::size_t most_written = 64;
constexpr double notably_longer = 1.01;

/// Returns, by rank, how long its compute stream ran.
std::vector<Seconds> computing(const Dag& dag, const Timeline& timeline) {
  std::vector<Seconds> time(dag.ranks.size(), 0);
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.tasks[id].stream == Stream::compute) time[dag.tasks[id].rank] += timeline.duration(id);
  }
  return time;
}

}  // namespace

std::vector<TracedRank> representative_ranks(const Dag& dag, const Timeline& timeline) {
  std::vector<TracedRank> chosen;
  if (dag.ranks.size() <= most_written) {
    for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) chosen.push_back({rank});
    return chosen;
  }
  struct OfStage {
    RankIndex common = 0, slowest = 0;
  };
  const std::vector<Seconds> time = computing(dag, timeline);
  std::map<std::int32_t, OfStage> stages;
  for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) {
    OfStage& stage = stages.try_emplace(dag.ranks[rank].pp, OfStage{rank, rank}).first->second;
    if (dag.ranks[rank].count > dag.ranks[stage.common].count) stage.common = rank;
    if (time[rank] > time[stage.slowest]) stage.slowest = rank;
  }
  for (const auto& [pp, stage] : stages) {
    chosen.push_back({stage.common});
    if (time[stage.slowest] > notably_longer * time[stage.common]) chosen.push_back({stage.slowest});
  }
  std::ranges::sort(chosen, {}, &TracedRank::rank);
  return chosen;
}

}  // namespace tandem::traces
