#include "scenarios/lowering/ownership.h"

#include <algorithm>

#include "scenarios/mesh/expert_mesh.h"
#include "scenarios/mesh/owners.h"

namespace tandem::scenarios {

PlaceInGroup place_in(const World& world, RankIndex rank, Slot slot) {
  const CommunicatorId id = world.communicator(rank, slot);
  if (id == no_id) return {};
  const std::vector<std::uint32_t>& members = world.communicators[id].members;
  const auto found = std::ranges::find(members, world.ranks[rank].world_rank);
  // In a folded world the communicator's representative may be another; all slices are of one size.
  return {static_cast<std::int64_t>(members.size()), found == members.end() ? 0 : found - members.begin()};
}

Ownership ownership(const Scenario& scenario, const World& world, RankIndex rank) {
  const PlaceInGroup whole = place_in(world, rank, Slot::data);
  const PlaceInGroup in_block = place_in(world, rank, Slot::data_block);
  const PlaceInGroup across = place_in(world, rank, Slot::data_across);
  // With experts the norm is summed over all ranks.
  const std::int64_t same = scenario.model.moe.experts > 0 ? whole.of * in_block.of * across.of : 1;
  if (scenario.parallelism.zero == 0) return {.replicas = same, .granularity = in_block.of};
  if (in_block.of == 1)
    return {.owners = whole.of, .slice = place_in_data_group(Mesh(scenario.parallelism), world.ranks[rank].world_rank)};
  if (!scenario.training.hierarchical_all_reduce) return {.owners = in_block.of, .slice = in_block.at, .replicas = across.of};
  return {.owners = in_block.of * across.of, .slice = in_block.at * across.of + across.at};
}

Ownership expert_ownership(const Scenario& scenario, const World& world, RankIndex rank) {
  const PlaceInGroup place = place_in(world, rank, Slot::expert_data);
  if (scenario.parallelism.zero == 0) return {.replicas = place.of};
  const Mesh mesh(scenario.parallelism);
  return {.owners = place.of, .slice = ExpertMesh(scenario.parallelism, mesh).place(world.ranks[rank].world_rank).replica};
}

}  // namespace tandem::scenarios
