#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "studies/serve/served_scenario.h"

namespace tandem::studies {

/// Returns the file of a study (sweep/study.h) with these scenarios as its points: the first one, and at each point the fields in
/// which any two of them differ. Throws InputError, also where there is no scenario.
std::string pinned_study(const std::vector<ServedScenario>& pinned, const std::filesystem::path& folder);

}  // namespace tandem::studies
