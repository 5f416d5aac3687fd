#pragma once

#include <optional>
#include <string>

#include "studies/search/search.h"

namespace tandem::studies {

/// What rules a plan out, or by how much it loses.
struct Explanation {
  Plan plan;
  std::string refusal;             ///< the scenario's own sentence, where it admits no such plan
  bool is_among = false;           ///< the plans of the space
  MemoryBound memory;              ///< what it takes at least; zero where it was refused
  Seconds time_bound = 0;          ///< likewise
  std::optional<RatedPlan> rated;  ///< simulated, whatever the bounds say
  Shortfall lacks;                 ///< of the constraints, as simulated
  std::string failure;             ///< why it could not be simulated
};

Explanation explain(const Plan& plan, const SearchSpec& spec, const PlanSpace& space, Search& search, PlanRuns& runs);

}  // namespace tandem::studies
