#include "topology/hop_list.h"

#include <algorithm>

namespace tandem::topology {

void HopList::add(Hop hop, const CrossingSum& sum) {
  const auto place = [&](std::uint32_t gpu) {
    return static_cast<std::uint32_t>(std::ranges::find(members_, gpu) - members_.begin());
  };
  Paths one = sum.paths(Algorithm::direct, 1);
  hop.from = place(hop.from);
  hop.to = place(hop.to);
  hop.parts *= one.channels;
  hop.crossings = std::move(one.crossings);
  hops_.push_back(std::move(hop));
}

}  // namespace tandem::topology
