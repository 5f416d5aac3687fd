#include "topology/crossing_sum.h"

#include <algorithm>
#include <numeric>

namespace tandem {

Paths CrossingSum::paths(Algorithm algorithm, std::uint32_t channels) const {
  std::uint32_t parts = 1;
  for (const Entry& entry : entries_) parts = std::lcm(parts, entry.amount.parts);
  std::vector<Crossing> all;
  all.reserve(entries_.size());
  for (const Entry& entry : entries_) all.push_back({entry.link, entry.amount.times * (parts / entry.amount.parts)});
  std::ranges::sort(all, {}, &Crossing::link);

  Paths paths{.algorithm = algorithm, .channels = channels * parts};
  for (const Crossing& crossing : all) {
    if (crossing.multiplicity == 0) continue;
    if (!paths.crossings.empty() && paths.crossings.back().link == crossing.link) {
      paths.crossings.back().multiplicity += crossing.multiplicity;
    } else {
      paths.crossings.push_back(crossing);
    }
  }
  std::uint32_t common = paths.channels;
  for (const Crossing& crossing : paths.crossings) common = std::gcd(common, crossing.multiplicity);
  paths.channels /= common;
  for (Crossing& crossing : paths.crossings) crossing.multiplicity /= common;
  return paths;
}

}  // namespace tandem
