#include "scenarios/lowering/stages.h"

#include <stdexcept>

namespace tandem {

std::vector<ChunkLayout> lay_out_chunks(const Scenario& scenario) {
  const ParallelismSpec& p = scenario.parallelism;
  const std::int64_t parts = p.pp * p.vpp;
  const std::int64_t places = scenario.model.layers + (p.account_for_embedding ? 1 : 0) + (p.account_for_loss ? 1 : 0);
  if (places % parts != 0) throw std::logic_error("the layers do not divide over the model chunks");
  std::vector<ChunkLayout> chunks(static_cast<std::size_t>(parts));
  std::int64_t next_layer = 0;
  for (std::int64_t part = 0; part < parts; ++part) {
    ChunkLayout& chunk = chunks[static_cast<std::size_t>(part)];
    chunk.embedding = part == 0;
    chunk.loss = part == parts - 1;
    chunk.first_layer = next_layer;
    chunk.layers = places / parts;
    if (chunk.embedding && p.account_for_embedding) --chunk.layers;
    if (chunk.loss && p.account_for_loss) --chunk.layers;
    next_layer += chunk.layers;
  }
  return chunks;
}

}  // namespace tandem
