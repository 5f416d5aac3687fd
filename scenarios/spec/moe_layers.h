#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tandem::scenarios {

/// The fields first_dense_layers and every that put experts into just these layers, 1 for a layer with experts; nothing where no
/// such fields do.
struct MoeLayers {
  std::int64_t first_dense_layers = 0, every = 1;
};
std::optional<MoeLayers> moe_layers_of(const std::vector<std::int64_t>& pattern);

}  // namespace tandem::scenarios
