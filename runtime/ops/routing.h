#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/ops/attributes.h"

namespace tandem {

// Where the slots of a routing lie (RoutingAttributes).

/// By expert, its first slot in its part's block.
std::vector<std::int32_t> offsets_in_block(const RoutingAttributes& attributes);

/// The expert of a choice, by its slot; also when it was dropped. `offsets`: those in the block.
std::size_t expert_of(std::int32_t slot, const RoutingAttributes& attributes, const std::vector<std::int32_t>& offsets);

}  // namespace tandem
