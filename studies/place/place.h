#pragma once

#include <string>

#include "studies/place/placement_result.h"

namespace tandem::studies {

/// Finds a placement for the job (placement_search.h) and sums up what it is worth. Throws like `search_placement`; where the
/// cluster cannot be, InputError placed at the scenario's `file`.
PlacementResult place(const PlacedJob& job, const std::string& file, const PlacementBudget& budget, const std::string& study,
                      std::size_t jobs, const OnRunProgress& told = {});

}  // namespace tandem::studies
