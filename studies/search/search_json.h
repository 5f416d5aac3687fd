#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "studies/search/explain.h"
#include "studies/search/search.h"

namespace tandem::studies {

/// Returns the stable JSON form, in SI units. Everything but `run` is the same for any number of processes. `explanation` may be
/// null.
std::string to_json(const SearchResult& result, const Explanation* explanation, const SearchSpec& spec,
                    const PlanChoices& choices, Seconds wall);

/// Returns what stands there of one plan.
nlohmann::ordered_json to_json_object(const RatedPlan& rated, const SearchSpec& spec, const PlanChoices& choices);

}  // namespace tandem::studies
