#include "scenarios/mesh/mirrored_stages.h"

#include <array>
#include <utility>

#include "scenarios/schedules/chunk_placement.h"

namespace tandem::scenarios {
namespace {

/// Of the copy whose forwards go from lower stages to higher ones, and of the other.
constexpr std::array<std::pair<Slot, Slot>, 4> slots_of_copies{{
    {Slot::send_forward, Slot::send_forward_descending},
    {Slot::receive_forward, Slot::receive_forward_descending},
    {Slot::send_backward, Slot::send_backward_descending},
    {Slot::receive_backward, Slot::receive_backward_descending},
}};

}  // namespace

MirroredStages::MirroredStages(const Scenario& scenario) {
  const bool deals_out_matrices = scenario.training.optimizer == OptimizerKind::muon && scenario.parallelism.zero > 0;
  if (ChunkPlacement(scenario).copies() < 2 || scenario.training.documents.any() || deals_out_matrices) return;
  stages_ = static_cast<std::int32_t>(scenario.parallelism.pp);
}

Slot MirroredStages::seen(Slot slot, std::int32_t stage) const {
  if (!is_mirror(stage)) return slot;
  for (const auto& [ascending, descending] : slots_of_copies) {
    if (slot == ascending) return descending;
    if (slot == descending) return ascending;
  }
  return slot;
}

}  // namespace tandem::scenarios
