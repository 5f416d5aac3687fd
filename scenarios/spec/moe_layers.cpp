#include "scenarios/spec/moe_layers.h"

#include <algorithm>

#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

std::optional<MoeLayers> moe_layers_of(const std::vector<std::int64_t>& pattern) {
  const auto first = std::ranges::find(pattern, 1);
  if (first == pattern.end()) return {};
  const auto second = std::find(first + 1, pattern.end(), 1);
  const auto layers = static_cast<std::int64_t>(pattern.size());
  // With a single such layer any period beyond the end will do.
  const MoeLayers found{.first_dense_layers = first - pattern.begin(),
                        .every = second == pattern.end() ? layers : second - first};
  MoeSpec moe;
  moe.experts = 1;
  moe.first_dense_layers = found.first_dense_layers;
  moe.every = found.every;
  for (std::int64_t layer = 0; layer < layers; ++layer)
    if ((pattern[static_cast<std::size_t>(layer)] == 1) != moe.in_layer(layer)) return {};
  return found;
}

}  // namespace tandem::scenarios
