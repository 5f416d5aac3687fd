#include "topology/crossing_sum.h"

#include <algorithm>
#include <numeric>

namespace tandem::topology {

Paths CrossingSum::paths(Algorithm algorithm, std::uint32_t channels) const {
  std::uint32_t parts = 1;
  LinkId first = 0xFFFFFFFF, last = 0;
  for (const Entry& entry : entries_) {
    if (entry.amount.parts != parts) parts = std::lcm(parts, entry.amount.parts);
    first = std::min(first, entry.link);
    last = std::max(last, entry.link);
  }
  Paths paths{.algorithm = algorithm, .channels = channels * parts};
  const auto times = [&](const Entry& entry) {
    return entry.amount.parts == parts ? entry.amount.times : entry.amount.times * (parts / entry.amount.parts);
  };
  if (entries_.size() > last - first) {  // dense: count
    std::vector<std::uint32_t> counts(entries_.empty() ? 0 : last - first + 1, 0);
    for (const Entry& entry : entries_) counts[entry.link - first] += times(entry);
    paths.crossings.reserve(counts.size() - static_cast<std::size_t>(std::ranges::count(counts, 0U)));
    for (LinkId link = 0; link < counts.size(); ++link) {
      if (counts[link] > 0) paths.crossings.push_back({first + link, counts[link]});
    }
  } else {
    std::vector<Crossing> sorted;
    sorted.reserve(entries_.size());
    for (const Entry& entry : entries_) sorted.push_back({entry.link, times(entry)});
    std::ranges::sort(sorted, {}, &Crossing::link);
    for (const Crossing& crossing : sorted) {
      if (crossing.multiplicity == 0) continue;
      if (paths.crossings.empty() || paths.crossings.back().link != crossing.link)
        paths.crossings.push_back(crossing);
      else
        paths.crossings.back().multiplicity += crossing.multiplicity;
    }
  }
  std::uint32_t common = paths.channels;
  for (const Crossing& crossing : paths.crossings) {
    if (common == 1) return paths;
    common = std::gcd(common, crossing.multiplicity);
  }
  paths.channels /= common;
  for (Crossing& crossing : paths.crossings) crossing.multiplicity /= common;
  return paths;
}

}  // namespace tandem::topology
