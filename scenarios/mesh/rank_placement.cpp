#include "scenarios/mesh/rank_placement.h"

#include <unordered_map>

#include "runtime/base/divide_up.h"

namespace tandem::scenarios {

std::vector<std::uint32_t> gpus_of_ranks(const Scenario& scenario) {
  const RankPlacement& placement = scenario.parallelism.placement;
  if (placement.kind == RankPlacement::Kind::listed) return placement.gpus;
  if (placement.is_packed()) return {};
  const std::int64_t ranks = scenario.parallelism.world_size(), per_node = scenario.cluster.gpus_per_node;
  const std::int64_t nodes = divide_up(ranks, per_node);
  std::vector<std::uint32_t> gpus;
  for (std::int64_t rank = 0; rank < ranks; ++rank)
    gpus.push_back(static_cast<std::uint32_t>(rank % nodes * per_node + rank / nodes));
  return gpus;
}

bool keeps_nodes_together(const Scenario& scenario) {
  const RankPlaces places(scenario);
  const std::int64_t per_node = scenario.cluster.gpus_per_node;
  std::unordered_map<std::int64_t, std::int64_t> held_by;  // by node: the ranks' node if packed
  for (std::int64_t rank = 0; rank < scenario.parallelism.world_size(); ++rank) {
    const std::int64_t block = rank / per_node, node = places.node(static_cast<std::uint32_t>(rank));
    if (node != places.node(static_cast<std::uint32_t>(block * per_node))) return false;
    if (held_by.try_emplace(node, block).first->second != block) return false;
  }
  return true;
}

RankPlaces::RankPlaces(const Scenario& scenario)
    : gpus_(gpus_of_ranks(scenario)), gpus_per_node_(scenario.cluster.gpus_per_node) {}

}  // namespace tandem::scenarios
