#pragma once

#include <cstdint>

namespace tandem::scenarios {

/// The largest cluster that can be described: eight times the 131,072 GPUs that Tandem is made for, and small enough for products
/// of ranks, sizes and bytes to fit 63 bits.
inline constexpr std::int64_t max_gpus = 1'048'576;

/// The deepest model, and so the most model chunks of a stage.
inline constexpr std::int64_t max_layers = 10'000;

}  // namespace tandem::scenarios
