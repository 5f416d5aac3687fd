#pragma once

#include <optional>
#include <string>

#include "studies/search/search.h"

namespace tandem::studies {

/// Says what rules a plan out, or by how much the plan loses to the winner.
struct Explanation {
  Plan plan;
  std::string refusal;             ///< the scenario's own sentence; empty where the scenario admits the plan
  bool is_among = false;           ///< the plan is one of the space
  MemoryBound memory;              ///< what the plan takes at least; zero where the plan was refused
  Seconds time_bound = 0;          ///< zero where the plan was refused
  std::optional<RatedPlan> rated;  ///< the simulated plan, which is simulated whatever the bounds say
  Shortfall lacks;                 ///< which constraints the simulated plan misses, and by how much
  std::string failure;             ///< why the plan could not be simulated
};

Explanation explain(const Plan& plan, const SearchSpec& spec, const PlanSpace& space, Search& search, PlanRuns& runs);

}  // namespace tandem::studies
