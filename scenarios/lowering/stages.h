#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/scenario.h"

namespace tandem {

/// What one model chunk holds: layers [first_layer, first_layer + layers), and the ends of the model.
struct ChunkLayout {
  std::int64_t first_layer = 0;
  std::int64_t layers = 0;
  bool embedding = false;
  bool loss = false;
};

/// Chunk c of stage s is the (c * pp + s)-th part of the model. Parts are equal, where the embedding and the loss take a layer's
/// place each if the scenario counts them. Indexed by that virtual stage.
std::vector<ChunkLayout> lay_out_chunks(const Scenario& scenario);

}  // namespace tandem
