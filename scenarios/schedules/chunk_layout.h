#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// What one model chunk holds: layers [first_layer, first_layer + layers), the ends of the model, and what predicts further
/// tokens.
struct ChunkLayout {
  std::int64_t first_layer = 0;
  std::int64_t layers = 0;
  bool embedding = false;
  bool loss = false;
  std::int64_t mtp = 0;  ///< layers that predict further tokens: all of the model's or none
  /// Hidden states of each token that come in: one, and behind the further predictions theirs as well.
  std::int64_t states_in = 1;

  std::int64_t states_out() const { return states_in + (loss ? 0 : mtp); }
  bool predicts_for_another() const { return mtp > 0 && !loss; }
  /// Nothing: what comes in goes on to the next chunk.
  bool is_empty() const { return layers == 0 && mtp == 0 && !embedding && !loss; }
};

/// By part of the model (see chunk_placement.h): as `parallelism.pipeline_layout` says. Without it parts are equal, where the
/// embedding and the loss take a layer's place each if the scenario counts them; but those of the first and of the last stage
/// share what the scenario gives that stage.
std::vector<ChunkLayout> lay_out_chunks(const Scenario& scenario);

/// Whether another chunk than the loss's predicts further tokens.
bool mtp_is_apart(const Scenario& scenario);

/// The parts of the model that hold the token table, in their order: the embedding's, that of further predictions, and the loss's
/// where the LM head is tied to it.
std::vector<std::int32_t> parts_with_token_table(const Scenario& scenario);

}  // namespace tandem::scenarios
