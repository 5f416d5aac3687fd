#include "scenarios/mesh/data_blocks.h"

#include <algorithm>

namespace tandem::scenarios {

std::int64_t data_members_on_node(const Scenario& scenario, const Mesh& mesh, std::uint32_t rank) {
  const auto node_of = [&](std::uint32_t r) { return r / scenario.cluster.gpus_per_node; };
  return std::ranges::count(mesh.members(rank, {Axis::cp, Axis::dp}), node_of(rank), node_of);
}

std::int64_t data_block(const Scenario& scenario, const Mesh& mesh) {
  const std::int64_t members = mesh.extent(Axis::cp) * mesh.extent(Axis::dp);
  std::int64_t block = members;
  if (scenario.parallelism.hsdp > 0) block = scenario.parallelism.hsdp;
  if (scenario.training.hierarchical_all_reduce) block = data_members_on_node(scenario, mesh, 0);
  return block == members ? 0 : block;
}

}  // namespace tandem::scenarios
