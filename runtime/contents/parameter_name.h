#pragma once

#include <string_view>

namespace tandem {

/// What a parameter is stands in how its name ends: ".weight" (norms, and what each head has one number of) and ".bias" are
/// vectors, ".taps" [channels, taps + 1] the weights and
/// last the bias of a short convolution, and all others are matrices.
inline bool is_vector(std::string_view tensor) { return tensor.ends_with(".weight") || tensor.ends_with(".bias"); }
inline bool is_convolution(std::string_view tensor) { return tensor.ends_with(".taps"); }

}  // namespace tandem
