#include "sim/binding_crossings.h"

#include <algorithm>
#include <iterator>

#include "runtime/dag/nonbinding_links.h"

namespace tandem::sim {

BindingCrossings::BindingCrossings(const Dag& dag, const std::vector<Link>& links) {
  std::vector<BytesPerSecond> capacities;
  for (const Link& link : links) capacities.push_back(link.capacity);
  std::vector<PathUse> uses;
  std::uint32_t path = 0;
  for (const Communicator& communicator : dag.communicators) {
    for (const Paths& paths : communicator.layout.paths) {
      for (const Crossing& crossing : paths.crossings) uses.push_back({path, crossing.link, crossing.multiplicity});
      ++path;
    }
  }
  const std::vector<bool> nonbinding = nonbinding_links(capacities, uses);

  for (const Communicator& communicator : dag.communicators) {
    first_path_.push_back(begin_.size());
    for (const Paths& paths : communicator.layout.paths) {
      begin_.push_back(crossings_.size());
      std::ranges::copy_if(paths.crossings, std::back_inserter(crossings_),
                           [&](const Crossing& crossing) { return crossing.multiplicity > 0 && !nonbinding[crossing.link]; });
    }
  }
  begin_.push_back(crossings_.size());
}

}  // namespace tandem::sim
