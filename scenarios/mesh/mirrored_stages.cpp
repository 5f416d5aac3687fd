#include "scenarios/mesh/mirrored_stages.h"

#include "scenarios/mesh/pipeline_channels.h"
#include "scenarios/schedules/chunk_placement.h"

namespace tandem::scenarios {

MirroredStages::MirroredStages(const Scenario& scenario) {
  const bool deals_out_matrices = scenario.training.optimizer == OptimizerKind::muon && scenario.parallelism.zero > 0;
  if (ChunkPlacement(scenario).copies() < 2 || scenario.training.documents.any() || deals_out_matrices) return;
  stages_ = static_cast<std::int32_t>(scenario.parallelism.pp);
}

Slot MirroredStages::seen(Slot slot, std::int32_t stage) const {
  if (!is_mirror(stage)) return slot;
  for (const auto& [ascending, descending] : pipeline_channels) {
    if (slot == ascending.send) return descending.send;
    if (slot == ascending.receive) return descending.receive;
    if (slot == descending.send) return ascending.send;
    if (slot == descending.receive) return ascending.receive;
  }
  return slot;
}

}  // namespace tandem::scenarios
