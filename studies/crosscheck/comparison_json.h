#pragma once

#include <nlohmann/json_fwd.hpp>

#include "studies/crosscheck/comparison.h"

namespace tandem::studies {

/// The object `crosscheck` of the JSON result, in SI units; its keys are listed in cli/README.md.
nlohmann::ordered_json to_json_object(const Comparison& comparison);

}  // namespace tandem::studies
