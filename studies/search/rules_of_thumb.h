#pragma once

#include <functional>
#include <string>
#include <vector>

#include "studies/search/plan.h"

namespace tandem::studies {

/// What planners go by. A search says of each how good the best plan is that breaks it.
struct RuleOfThumb {
  std::string name;  ///< "tp inside the node"
  std::function<bool(const Plan&)> is_broken;
};

/// Those that a plan of this search could break. `least_pp`: the shortest pipeline of any plan whose memory may fit.
std::vector<RuleOfThumb> rules_of_thumb(const SearchSpec& spec, const PlanChoices& choices, std::int64_t least_pp);

}  // namespace tandem::studies
