#include "scenarios/mesh/even_trees.h"

#include <algorithm>
#include <utility>

namespace tandem::scenarios {

EvenFold fold_evenly(const CommunicatorSurvey& survey, const SlotSet& even) {
  const auto is_even = [&](const FoldInput::Crossing& crossing) {
    const CommunicatorInstance& instance = survey.instances[crossing.communicator];
    const Algorithm algorithm = instance.layout.paths[crossing.path].algorithm;
    return even.test(static_cast<std::size_t>(instance.slot)) &&
           (algorithm == Algorithm::tree || algorithm == Algorithm::nvls_tree);
  };
  FoldInput input = survey.fold;
  std::erase_if(input.crossings, is_even);
  EvenFold found{.partition = fold(input), .tree_loads = {}};

  std::map<std::array<std::uint32_t, 3>, std::uint32_t> of_links;  // the same by link
  for (const FoldInput::Crossing& crossing : survey.fold.crossings) {
    if (!is_even(crossing)) continue;
    of_links[{found.partition.communicators.of[crossing.communicator], crossing.path, crossing.link}] += crossing.of_link;
  }
  for (const auto& [key, load] : of_links) {
    std::uint32_t& most = found.tree_loads[{key[0], key[1], found.partition.links.of[key[2]]}];
    most = std::max(most, load);
  }
  return found;
}

}  // namespace tandem::scenarios
