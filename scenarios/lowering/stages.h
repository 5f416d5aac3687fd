#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// What one model chunk holds: layers [first_layer, first_layer + layers), and the ends of the model.
struct ChunkLayout {
  std::int64_t first_layer = 0;
  std::int64_t layers = 0;
  bool embedding = false;
  bool loss = false;
};

/// By part of the model (see chunk_placement.h). Parts are equal, where the embedding and the loss take a layer's place each if
/// the scenario counts them; but those of the first and of the last stage share what the scenario gives that stage.
std::vector<ChunkLayout> lay_out_chunks(const Scenario& scenario);

}  // namespace tandem::scenarios
