#include "sim/rank_spans.h"

#include <algorithm>
#include <iterator>

namespace tandem::sim {

SpanId RankSpans::id_of(Distances distances) {
  const auto [found, is_new] = ids_.try_emplace(std::move(distances), static_cast<SpanId>(sets_.size()));
  if (is_new) sets_.push_back(found->first);
  return found->second;
}

RankSpans::RankSpans(const Dag& dag) {
  for (const Communicator& communicator : dag.communicators) {
    Distances distances(communicator.members.begin(), communicator.members.end());
    std::ranges::sort(distances);
    const std::int64_t lowest = distances.empty() ? 0 : distances.front();
    for (std::int64_t& distance : distances) distance -= lowest;
    of_communicator_.push_back(id_of(std::move(distances)));
  }
}

SpanId RankSpans::joined(SpanId left, SpanId right) {
  if (left == right) return left;
  const std::pair<SpanId, SpanId> pair = std::minmax(left, right);
  if (const auto known = joined_.find(pair); known != joined_.end()) return known->second;
  const Distances &a = sets_[left], &b = sets_[right];
  SpanId both = 0;
  if (std::ranges::includes(a, b)) {
    both = left;
  } else if (std::ranges::includes(b, a)) {
    both = right;
  } else {
    Distances sums;
    sums.reserve(a.size() * b.size());
    for (const std::int64_t x : a)
      for (const std::int64_t y : b) sums.push_back(x + y);
    std::ranges::sort(sums);
    const auto repeated = std::ranges::unique(sums);
    sums.erase(repeated.begin(), repeated.end());
    both = id_of(std::move(sums));
  }
  return joined_[pair] = both;
}

std::size_t RankSpans::in_common_of(SpanId span, SpanId members) {
  if (span >= common_.size()) common_.resize(span + 1);
  std::vector<std::uint32_t>& by_members = common_[span];
  if (members >= by_members.size()) by_members.resize(members + 1, 0);
  if (by_members[members] == 0) {
    Distances both;
    std::ranges::set_intersection(sets_[span], sets_[members], std::back_inserter(both));
    by_members[members] = static_cast<std::uint32_t>(both.size());
  }
  return by_members[members];
}

}  // namespace tandem::sim
