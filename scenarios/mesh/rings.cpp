#include "scenarios/mesh/rings.h"

#include <numeric>

namespace tandem::scenarios {

Rings::Rings(const Cluster& cluster, std::uint32_t ranks, MemberOrder order)
    : cluster_(cluster), order_(order), alike_(order != MemberOrder::of_members), has_(ranks, false), group_(ranks) {
  std::iota(group_.begin(), group_.end(), 0U);
  next_ = group_;
}

void Rings::add(const std::vector<std::uint32_t>& members) {
  std::size_t to = step_of(members);
  for (const std::uint32_t member : members) {
    has_[member] = true;
    group_[member] = members.front();
    next_[member] = members[to];
    if (++to == members.size()) to = 0;
  }
}

std::size_t Rings::step_of(const std::vector<std::uint32_t>& members) {
  if (order_ == MemberOrder::of_members) return 1;
  if (order_ == MemberOrder::none || cluster_.node_of(members.front()) == cluster_.node_of(members.back())) return 0;
  const std::size_t per_node = members_per_node(members);
  if (per_node > 0) return per_node;
  alike_ = false;
  return 1;
}

std::size_t Rings::members_per_node(const std::vector<std::uint32_t>& members) const {
  std::size_t first = 0, run = 0;
  std::int64_t last = cluster_.node_of(members.front());
  for (const std::uint32_t member : members) {
    const std::int64_t node = cluster_.node_of(member);
    if (node == last) {
      ++run;
      continue;
    }
    if (first == 0) first = run;
    if (run != first) return 0;
    run = 1;
    last = node;
  }
  return run == first ? first : 0;
}

}  // namespace tandem::scenarios
