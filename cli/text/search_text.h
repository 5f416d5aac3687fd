#pragma once

#include <string>

#include "cli/terminal/screen.h"
#include "studies/search/explain.h"
#include "studies/search/search.h"

namespace tandem::cli {

/// The best plans and how the search found them, for a person. `wall` is the time of the whole command.
std::string to_text(const SearchResult& result, const SearchSpec& spec, const PlanChoices& choices, Seconds wall,
                    const Screen& screen = {});

/// Says why a plan is not the winner.
std::string to_text(const Explanation& explanation, const SearchResult& result, const SearchSpec& spec,
                    const PlanChoices& choices, const Screen& screen = {});

/// "no plan fits; the nearest, tp=8 ..., lacks 1234567 bytes (0.00 GB) on each GPU of its fullest stage".
std::string nothing_fits_sentence(const SearchResult& result, const SearchSpec& spec, const PlanChoices& choices);

}  // namespace tandem::cli
