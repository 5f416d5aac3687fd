#include "scenarios/mesh/mesh_symmetry.h"

#include <algorithm>

#include "scenarios/mesh/communicator_axes.h"
#include "scenarios/mesh/data_blocks.h"

namespace tandem::scenarios {
namespace {

/// The axes of each kind of communicator of several ranks that crosses links.
std::vector<std::vector<Axis>> ring_axes(const Scenario& scenario) {
  return {tp_axes, context_axes, data_axes(scenario), replica_axes};
}

/// The axes along which ranks of one communicator have different places in trees over nodes.
std::vector<Axis> tree_axes(const Scenario& scenario, const Mesh& mesh, const Cluster& cluster, const SlotSet& without_trees) {
  const auto has_trees = [&](Slot slot) {
    return algorithms(scenario, slot).tree && !without_trees.test(static_cast<std::size_t>(slot));
  };
  std::vector<Axis> found;
  const auto collect = [&](const std::vector<Axis>& axes) {
    const std::vector<std::uint32_t> members = mesh.members(0, axes);
    if (cluster.node_of(members.front()) != cluster.node_of(members.back())) found.insert(found.end(), axes.begin(), axes.end());
  };
  if (has_trees(Slot::tp)) collect(tp_axes);
  const Slot data = data_block(scenario, mesh) > 0 ? Slot::data_across : Slot::data;
  const bool experts = scenario.model.moe.experts > 0 && has_trees(Slot::expert_data);
  if (has_trees(data) || experts) collect(data_axes(scenario));
  if (scenario.training.local_steps()) collect(replica_axes);
  return found;
}

/// Those of the experts lie across the axes, those of key-value replicas are parts of one. By kind and rank: the next in its
/// ring.
std::vector<std::vector<std::uint32_t>> other_rings(const Scenario& scenario, const Mesh& mesh) {
  std::vector<std::vector<std::uint32_t>> rings;
  if (scenario.kv_replicas() > 1) {
    std::vector<std::uint32_t>& next = rings.emplace_back();
    for (std::uint32_t rank = 0; rank < mesh.size(); ++rank) {
      const std::vector<std::uint32_t> ring = kv_replicas(scenario, mesh, rank);
      const auto place = static_cast<std::size_t>(std::ranges::find(ring, rank) - ring.begin());
      next.push_back(ring[(place + 1) % ring.size()]);
    }
  }
  if (scenario.model.moe.experts == 0) return rings;
  const ExpertMesh experts(scenario.parallelism, mesh);
  for (const auto& [slot, axis] : expert_slots) rings.push_back(experts.successors(axis));
  return rings;
}

}  // namespace

Symmetry symmetry_of(const Scenario& scenario, const Mesh& mesh, const Cluster& cluster,
                     const std::vector<std::uint32_t>& colours, const SlotSet& without_trees) {
  if (!cluster.is_regular() || !scenario.parallelism.placement.is_packed()) return {mesh, cluster};
  return {mesh,
          cluster,
          colours,
          {.rings = ring_axes(scenario),
           .trees = tree_axes(scenario, mesh, cluster, without_trees),
           .data_block = data_block(scenario, mesh),
           .successors = other_rings(scenario, mesh)}};
}

}  // namespace tandem::scenarios
