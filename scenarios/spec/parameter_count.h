#pragma once

#include <cstdint>

#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// Counts all trainable numbers of the unsharded model: embeddings, attention, MLPs or experts with their routers, norms (with
/// their biases, if LayerNorm), LM head unless tied, and what predicts further tokens. What Tandem leaves out (biases of linear
/// layers) is left out.
std::int64_t parameter_count(const ModelSpec& model);

/// Counts those of them that one token passes: of the routed experts as many as it goes to, on average, and all else.
std::int64_t active_parameter_count(const ModelSpec& model);

}  // namespace tandem::scenarios
