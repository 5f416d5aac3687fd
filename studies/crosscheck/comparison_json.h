#pragma once

#include <nlohmann/json_fwd.hpp>

#include "studies/crosscheck/comparison.h"

namespace tandem::studies {

/// The object `crosscheck` of the JSON result, in SI units; docs/json.md lists its keys.
nlohmann::ordered_json to_json_object(const Comparison& comparison);

}  // namespace tandem::studies
