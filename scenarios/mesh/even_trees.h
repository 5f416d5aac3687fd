#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "scenarios/mesh/communicators.h"
#include "scenarios/mesh/world.h"
#include "topology/folding.h"

namespace tandem::scenarios {

/// A fold that places in trees do not refine. Of each class of links, what trees load most is told of all.
struct EvenFold {
  Partition partition;
  /// By class of communicators, path and class of links: how often the link that these trees cross most is crossed by them.
  std::map<std::array<std::uint32_t, 3>, std::uint32_t> tree_loads;
};

/// Folds a survey without the trees of the slots `even`, and loads every link with what they load the fullest of its class with.
EvenFold fold_evenly(const CommunicatorSurvey& survey, const SlotSet& even);

}  // namespace tandem::scenarios
