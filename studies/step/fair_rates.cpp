#include "studies/step/fair_rates.h"

#include <algorithm>
#include <limits>

namespace tandem::studies {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

struct Filling {
  double left = 0;    ///< of the capacity
  double rising = 0;  ///< the multiplicities of the flows that rise
  bool is_full = false;
};

}  // namespace

std::vector<BytesPerSecond> fair_rates(const std::vector<SharingFlow>& flows, const World& world) {
  constexpr double rounding = 1e-9;
  const auto crossings_of = [&](const SharingFlow& flow) -> const std::vector<Crossing>& {
    return world.communicators[flow.communicator].layout.paths[flow.path].crossings;
  };
  std::vector<Filling> links(world.links.size());
  std::vector<LinkId> crossed;
  for (const SharingFlow& flow : flows) {
    for (const Crossing& crossing : crossings_of(flow)) {
      Filling& link = links[crossing.link];
      if (link.rising == 0 && crossing.multiplicity > 0) crossed.push_back(crossing.link);
      link.left = world.links[crossing.link].capacity;
      link.rising += crossing.multiplicity;
    }
  }
  std::vector<BytesPerSecond> rates(flows.size(), infinite);
  for (std::size_t rising = flows.size(); rising > 0;) {
    double level = infinite;
    for (const LinkId id : crossed)
      if (links[id].rising > 0) level = std::min(level, links[id].left / links[id].rising);
    for (std::size_t i = 0; i < flows.size(); ++i)
      if (rates[i] == infinite && flows[i].limit > 0) level = std::min(level, flows[i].limit);
    if (level == infinite) return rates;
    for (const LinkId id : crossed)
      links[id].is_full = links[id].rising > 0 && links[id].left / links[id].rising <= level * (1 + rounding);
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (rates[i] != infinite) continue;
      const std::vector<Crossing>& crossings = crossings_of(flows[i]);
      const bool held =
          (flows[i].limit > 0 && flows[i].limit <= level * (1 + rounding)) ||
          std::ranges::any_of(crossings, [&](const Crossing& c) { return c.multiplicity > 0 && links[c.link].is_full; });
      if (!held) continue;
      rates[i] = level;
      --rising;
      for (const Crossing& crossing : crossings) {
        links[crossing.link].left -= level * crossing.multiplicity;
        links[crossing.link].rising -= crossing.multiplicity;
      }
    }
  }
  return rates;
}

}  // namespace tandem::studies
