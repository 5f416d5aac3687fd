#include "scenarios/schedules/chunk_layout.h"

#include <stdexcept>

#include "scenarios/schedules/chunk_placement.h"

namespace tandem::scenarios {
namespace {

/// Layers of each part of the model, where the embedding and the loss count as a layer if the scenario says so.
std::vector<std::int64_t> places_by_part(const Scenario& scenario, const ChunkPlacement& placement) {
  const ParallelismSpec& p = scenario.parallelism;
  std::int64_t others = scenario.model.layers + (p.account_for_embedding ? 1 : 0) + (p.account_for_loss ? 1 : 0);
  std::int64_t other_stages = p.pp;
  for (const std::int64_t given : {p.first_stage_layers, p.last_stage_layers}) {
    others -= given;
    if (given > 0) --other_stages;
  }
  std::vector<std::int64_t> places;
  for (std::int32_t part = 0; part < placement.parts(); ++part) {
    const std::int32_t stage = placement.stage(part);
    std::int64_t given = stage == 0 ? p.first_stage_layers : 0;
    if (stage == p.pp - 1 && p.last_stage_layers > 0) given = p.last_stage_layers;
    const std::int64_t chunks = given > 0 ? p.vpp : p.vpp * other_stages;
    const std::int64_t layers = given > 0 ? given : others;
    if (layers % chunks != 0) throw std::logic_error("the layers do not divide over the model chunks");
    places.push_back(layers / chunks);
  }
  return places;
}

std::vector<ChunkLayout> as_written(const PipelineLayout& layout) {
  std::vector<ChunkLayout> chunks;
  std::int64_t next_layer = 0, states = 1;
  for (const std::string& stage : layout) {
    ChunkLayout& chunk = chunks.emplace_back();
    chunk.first_layer = next_layer;
    chunk.layers = count_in(stage, layout_part::layer);
    chunk.embedding = count_in(stage, layout_part::embedding) > 0;
    chunk.loss = count_in(stage, layout_part::loss) > 0;
    chunk.mtp = count_in(stage, layout_part::mtp);
    chunk.states_in = states;
    next_layer += chunk.layers;
    states = chunk.states_out();
  }
  return chunks;
}

}  // namespace

std::vector<ChunkLayout> lay_out_chunks(const Scenario& scenario) {
  const ParallelismSpec& p = scenario.parallelism;
  if (!p.pipeline_layout.empty()) return as_written(p.pipeline_layout);
  std::vector<ChunkLayout> chunks;
  std::int64_t next_layer = 0;
  for (const std::int64_t places : places_by_part(scenario, ChunkPlacement(scenario))) {
    ChunkLayout& chunk = chunks.emplace_back();
    chunk.embedding = chunks.size() == 1;
    chunk.first_layer = next_layer;
    chunk.layers = places - (chunk.embedding && p.account_for_embedding ? 1 : 0);
    next_layer += chunk.layers;
  }
  chunks.back().loss = true;
  chunks.back().mtp = scenario.model.mtp_depth;
  if (p.account_for_loss) --chunks.back().layers;
  return chunks;
}

bool mtp_is_apart(const Scenario& scenario) {
  const PipelineLayout& layout = scenario.parallelism.pipeline_layout;
  return !layout.empty() && scenario.model.mtp_depth > 0 && count_in(layout.back(), layout_part::mtp) == 0;
}

std::vector<std::int32_t> parts_with_token_table(const Scenario& scenario) {
  const std::vector<ChunkLayout> chunks = lay_out_chunks(scenario);
  std::vector<std::int32_t> parts;
  for (std::size_t part = 0; part < chunks.size(); ++part) {
    const ChunkLayout& chunk = chunks[part];
    if (chunk.embedding || chunk.mtp > 0 || (chunk.loss && scenario.model.tied_embeddings))
      parts.push_back(static_cast<std::int32_t>(part));
  }
  return parts;
}

}  // namespace tandem::scenarios
