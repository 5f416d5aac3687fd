#pragma once

#include <string>

#include "studies/search/explain.h"
#include "studies/search/search.h"

namespace tandem::studies {

/// The stable JSON form: SI units. All but `run` is the same whatever the number of processes. `explanation` may be null.
std::string to_json(const SearchResult& result, const Explanation* explanation, const SearchSpec& spec,
                    const PlanChoices& choices, Seconds wall);

}  // namespace tandem::studies
