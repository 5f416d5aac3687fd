#include "scenarios/mesh/data_blocks.h"

#include <algorithm>
#include <map>

#include "scenarios/mesh/communicator_axes.h"

namespace tandem::scenarios {

std::vector<std::uint32_t> in_block(const std::vector<std::uint32_t>& group, std::uint32_t rank, std::int64_t block) {
  const auto first = group.begin() + (std::ranges::find(group, rank) - group.begin()) / block * block;
  return {first, first + std::min(block, group.end() - first)};
}

std::vector<std::uint32_t> across_blocks(const std::vector<std::uint32_t>& group, std::uint32_t rank, std::int64_t block) {
  const std::int64_t members = std::ssize(group);
  std::vector<std::uint32_t> across;
  for (std::int64_t i = (std::ranges::find(group, rank) - group.begin()) % block; i < members; i += block)
    across.push_back(group[static_cast<std::size_t>(i)]);
  return across;
}

std::int64_t data_members(const Mesh& mesh) { return mesh.extent(Axis::cp) * mesh.extent(Axis::ep) * mesh.extent(Axis::dp); }

std::pair<std::int64_t, std::int64_t> data_members_by_node(const Scenario& scenario, const Mesh& mesh) {
  const std::vector<Axis> axes = data_axes(scenario);
  std::int64_t least = data_members(mesh), most = 1;
  for (std::uint32_t rank = 0; rank < mesh.size(); ++rank) {
    const std::vector<std::uint32_t> group = mesh.members(rank, axes);
    if (group.front() != rank) continue;
    std::map<std::int64_t, std::int64_t> by_node;
    for (const std::uint32_t member : group) ++by_node[member / scenario.cluster.gpus_per_node];
    for (const auto& [node, count] : by_node) {
      least = std::min(least, count);
      most = std::max(most, count);
    }
  }
  return {least, most};
}

namespace {

/// Nodes hold equal numbers of members of every group, which checks/ sees to.
std::int64_t members_on_node_of_first(const Scenario& scenario, const Mesh& mesh) {
  const auto node_of = [&](std::uint32_t r) { return r / scenario.cluster.gpus_per_node; };
  return std::ranges::count(mesh.members(0, data_axes(scenario)), 0, node_of);
}

}  // namespace

std::int64_t data_block(const Scenario& scenario, const Mesh& mesh) {
  std::int64_t block = 0;
  if (scenario.parallelism.hsdp > 0) block = scenario.parallelism.hsdp;
  if (scenario.training.hierarchical_all_reduce) block = members_on_node_of_first(scenario, mesh);
  return block > 1 && block < data_members(mesh) ? block : 0;
}

}  // namespace tandem::scenarios
