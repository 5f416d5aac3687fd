#include "scenarios/lowering/ownership.h"

#include <algorithm>

namespace tandem {

Place place_in(const World& world, RankIndex rank, Slot slot) {
  const CommunicatorId id = world.communicator(rank, slot);
  if (id == no_id) return {};
  const std::vector<std::uint32_t>& members = world.communicators[id].members;
  const auto found = std::ranges::find(members, world.ranks[rank].world_rank);
  // In a folded world the communicator's representative may be another; all slices are of one size.
  return {static_cast<std::int64_t>(members.size()), found == members.end() ? 0 : found - members.begin()};
}

Ownership ownership(const Scenario& scenario, const World& world, RankIndex rank) {
  const Place whole = place_in(world, rank, Slot::data);
  const Place in_block = place_in(world, rank, Slot::data_block);
  const Place across = place_in(world, rank, Slot::data_across);
  if (scenario.parallelism.zero == 0) return {.granularity = in_block.of};
  if (in_block.of == 1) return {.owners = whole.of, .slice = whole.at};
  if (!scenario.training.hierarchical_all_reduce) return {.owners = in_block.of, .slice = in_block.at, .replicas = across.of};
  return {.owners = in_block.of * across.of, .slice = in_block.at * across.of + across.at};
}

}  // namespace tandem
