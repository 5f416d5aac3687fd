#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// Returns Megatron's --moe-layer-freq of a model with experts: a number N where they are in every N-th layer from the first on,
/// else a list expression such as "[0]*3+[1]*58", 1 for a layer with experts.
std::string moe_layer_pattern(const ModelSpec& model);

/// Returns the list that such an expression of numbers, brackets, + and * means, or nothing where it means none, or one longer
/// than 10,000.
std::optional<std::vector<std::int64_t>> evaluate_layer_pattern(std::string_view expression);

}  // namespace tandem::scenarios
