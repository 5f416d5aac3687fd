#pragma once

#include <string>

#include "cli/search/explain.h"
#include "cli/search/search.h"

namespace tandem {

/// The stable JSON form: SI units. All but `run` is the same whatever the number of processes. `explanation` may be null.
std::string to_json(const SearchResult& result, const Explanation* explanation, const SearchSpec& spec,
                    const PlanChoices& choices, Seconds wall);

}  // namespace tandem
