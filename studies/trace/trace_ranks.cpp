#include "studies/trace/trace_ranks.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "runtime/base/number_range.h"

namespace tandem::studies {

std::vector<std::uint32_t> parse_ranks(std::string_view list, std::int64_t world) {
  const Place option{"--trace-ranks", 0, 0};
  std::set<std::uint32_t> ranks;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view item = list.substr(begin, end - begin);
    const NumberRange range = parse_range(item, option, "ranks and ranges of ranks, such as 0,5,16-31");
    if (range.last >= world)
      throw InputError(
          option, "there is no rank " + std::to_string(range.last) + ", expected ranks from 0 to " + std::to_string(world - 1));
    for (std::int64_t rank = range.first; rank <= range.last; ++rank) ranks.insert(static_cast<std::uint32_t>(rank));
    begin = end + 1;
  }
  return {ranks.begin(), ranks.end()};
}

std::vector<TracedRank> traced_ranks(const Dag& dag, std::span<const RankIndex> class_of,
                                     std::span<const std::uint32_t> world_ranks) {
  std::map<std::uint32_t, RankIndex> lowered;
  for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) lowered.emplace(dag.ranks[rank].world_rank, rank);

  std::map<RankIndex, std::vector<std::uint32_t>> asked;
  for (const std::uint32_t rank : world_ranks) asked[class_of.empty() ? lowered.at(rank) : class_of[rank]].push_back(rank);
  std::vector<TracedRank> traced;
  for (auto& [rank, as] : asked) traced.push_back({rank, std::move(as)});
  return traced;
}

}  // namespace tandem::studies
