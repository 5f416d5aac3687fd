#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "studies/crosscheck/comparison.h"
#include "studies/step/step_result.h"

namespace tandem::studies {

/// Returns the object `crosscheck` of the JSON result, in SI units; docs/json.md lists its keys.
nlohmann::ordered_json to_json_object(const Comparison& comparison);

/// Returns the JSON result of a cross-check: that of the executed step, with that object.
nlohmann::ordered_json to_json_object(const StepResult& executed, const Comparison& comparison);
std::string to_json(const StepResult& executed, const Comparison& comparison);

}  // namespace tandem::studies
