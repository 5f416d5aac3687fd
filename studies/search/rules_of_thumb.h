#pragma once

#include <functional>
#include <string>
#include <vector>

#include "studies/search/plan.h"

namespace tandem::studies {

/// A rule that planners go by. A search tells how good the best plan is that breaks the rule.
struct RuleOfThumb {
  std::string name;  ///< "tp inside the node"
  std::function<bool(const Plan&)> is_broken;
};

/// Returns the rules that a plan of this search could break. `least_pp` is the shortest pipeline of any plan that may fit into
/// memory.
std::vector<RuleOfThumb> rules_of_thumb(const SearchSpec& spec, const PlanChoices& choices, std::int64_t least_pp);

}  // namespace tandem::studies
