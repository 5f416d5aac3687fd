#include "studies/trace/trace_ranks.h"

#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "runtime/base/input_error.h"
#include "runtime/base/nearest.h"

namespace tandem::studies {
namespace {

[[noreturn]] void refuse(const std::string& sentence) { throw InputError({"--trace-ranks", 0, 0}, sentence); }

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool all_digits = !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  if (!all_digits || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::vector<std::uint32_t> parse_ranks(std::string_view list, std::int64_t world) {
  std::set<std::uint32_t> ranks;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view item = list.substr(begin, end - begin);
    const std::size_t dash = item.find('-');
    const std::optional<std::int64_t> first = whole_number(item.substr(0, dash));
    const std::optional<std::int64_t> last = dash == std::string_view::npos ? first : whole_number(item.substr(dash + 1));
    if (!first || !last) refuse("found " + excerpt(item) + ", expected ranks and ranges of ranks, such as 0,5,16-31");
    if (*last < *first)
      refuse(excerpt(item) + " ends before it begins, expected " + std::to_string(*last) + "-" + std::to_string(*first));
    if (*last >= world)
      refuse("there is no rank " + std::to_string(*last) + ", expected ranks from 0 to " + std::to_string(world - 1));
    for (std::int64_t rank = *first; rank <= *last; ++rank) ranks.insert(ranks.end(), static_cast<std::uint32_t>(rank));
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
