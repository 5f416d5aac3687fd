#include "studies/report/drawn_rows.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace tandem::studies {
namespace {

std::vector<RankIndex> busiest_of_stages(const Dag& dag, const Timeline& timeline) {
  std::vector<Seconds> busy(dag.ranks.size(), 0);
  for (TaskId id = 0; id < dag.tasks.size(); ++id)
    if (dag.tasks[id].stream == Stream::compute) busy[dag.tasks[id].rank] += timeline.times(id) * timeline.duration(id);
  std::map<std::int32_t, RankIndex> busiest;
  for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) {
    const auto [entry, is_first] = busiest.try_emplace(dag.ranks[rank].pp, rank);
    if (!is_first && busy[rank] > busy[entry->second]) entry->second = rank;
  }
  std::vector<RankIndex> ranks;
  for (const auto& [stage, rank] : busiest) ranks.push_back(rank);
  return ranks;
}

}  // namespace

std::vector<DrawnRow> drawn_rows(const Dag& dag, const Timeline& timeline, const std::vector<std::uint32_t>& mirrored) {
  constexpr std::size_t most = 64;
  std::vector<RankIndex> ranks(dag.ranks.size());
  std::iota(ranks.begin(), ranks.end(), RankIndex{0});
  const bool are_all = ranks.size() <= most;
  if (!are_all) ranks = busiest_of_stages(dag, timeline);
  std::vector<DrawnRow> rows;
  std::set<std::int32_t> stages;
  for (const RankIndex index : ranks) {
    const Rank& rank = dag.ranks[index];
    rows.push_back({index, rank.pp, rank.world_rank, rank.count - rank.mirrored});
    stages.insert(rank.pp);
  }
  for (const RankIndex index : ranks) {
    const auto [stage, count] = dag.ranks[index].by_stage(dag.info.stages)[1];
    if (count > 0 && (are_all || stages.insert(stage).second)) rows.push_back({index, stage, mirrored.at(index), count});
  }
  std::ranges::sort(rows, {}, [](const DrawnRow& row) { return std::tuple(row.stage, row.world_rank); });
  return rows;
}

}  // namespace tandem::studies
