#include "scenarios/mesh/mesh_symmetry.h"

#include <algorithm>
#include <utility>

#include "scenarios/mesh/communicator_axes.h"
#include "scenarios/mesh/data_blocks.h"

namespace tandem::scenarios {
namespace {

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

/// Those that do not lie along one axis: of gradients, and of the experts.
class RingsOfMesh {
 public:
  RingsOfMesh(const Scenario& scenario, const Mesh& mesh, const Cluster& cluster, const SlotSet& without_trees)
      : scenario_(scenario), mesh_(mesh), cluster_(cluster), without_trees_(without_trees) {}

  std::vector<Rings> all() {
    const auto data = [&](std::uint32_t rank) { return mesh_.members(rank, data_axes(scenario_)); };
    if (const std::int64_t block = data_block(scenario_, mesh_); block > 0) {
      add(Slot::data_block, [&](std::uint32_t rank) { return in_block(data(rank), rank, block); });
      add(Slot::data_across, [&](std::uint32_t rank) { return across_blocks(data(rank), rank, block); });
    } else if (lie_along_several(data_axes(scenario_))) {
      add(Slot::data, data);
    }
    if (scenario_.model.moe.experts == 0) return std::move(rings_);
    const ExpertMesh experts(scenario_.parallelism, mesh_);
    for (const auto& [slot, axis] : expert_slots) {
      if (axis == ExpertAxis::expert && scenario_.parallelism.own_expert_axis) continue;
      add(slot, [&](std::uint32_t rank) { return expert_members(scenario_, mesh_, experts, rank, axis); });
    }
    return std::move(rings_);
  }

 private:
  const Scenario& scenario_;
  const Mesh& mesh_;
  const Cluster& cluster_;
  const SlotSet without_trees_;
  std::vector<Rings> rings_;

  bool lie_along_several(const std::vector<Axis>& axes) const {
    return std::ranges::count_if(axes, [&](Axis axis) { return mesh_.extent(axis) > 1; }) > 1;
  }

  MemberOrder order_of(Slot slot) const {
    if (slot == Slot::expert)  // HybridEP gathers what was chosen in a ring, and then sends
      return scenario_.parallelism.dispatcher == Dispatcher::hybridep ? MemberOrder::of_nodes : MemberOrder::none;
    const bool trees = algorithms(scenario_, slot).tree && !without_trees_.test(static_cast<std::size_t>(slot));
    return trees ? MemberOrder::of_members : MemberOrder::of_nodes;
  }

  template <typename Members>
  void add(Slot slot, const Members& members_of) {
    if (members_of(0).size() < 2) return;
    Rings rings(cluster_, static_cast<std::uint32_t>(mesh_.size()), order_of(slot));
    for (std::uint32_t rank = 0; rank < mesh_.size(); ++rank) {
      if (!rings.has(rank)) rings.add(members_of(rank));
    }
    rings_.push_back(std::move(rings));
  }
};

/// Ranks that hold one key-value head, and those that deal out heads or exchange among some of the context-parallel ones.
std::vector<Symmetry::Runs> runs_of_mesh(const Scenario& scenario) {
  const ParallelismSpec& p = scenario.parallelism;
  std::vector<Symmetry::Runs> runs{{Axis::tp, scenario.kv_replicas()}, {Axis::cp, p.heads_ranks()}};
  for (std::int64_t size = 2; p.dynamic_cp && size < p.cp; size *= 2) runs.push_back({Axis::cp, size});
  return runs;
}

/// Where GPUs share a NIC behind different PCIe ports, tokens that are sent once to a node enter it by the port of one of them.
bool enters_by_one_port(const Scenario& scenario, const Cluster& cluster) {
  const ClusterSpec& spec = cluster.spec();
  return scenario.model.moe.experts > 0 && sends_once(scenario.parallelism.dispatcher) && !spec.pcie.ports.empty() &&
         spec.nics_per_node < spec.gpus_per_node;
}

}  // namespace

Symmetry symmetry_of(const Scenario& scenario, const Mesh& mesh, const Cluster& cluster,
                     const std::vector<std::uint32_t>& colours, const SlotSet& without_trees) {
  if (!cluster.is_regular() || !scenario.parallelism.placement.is_packed() || enters_by_one_port(scenario, cluster))
    return {mesh, cluster};
  return {mesh,
          cluster,
          colours,
          {.rings = RingsOfMesh(scenario, mesh, cluster, without_trees).all(),
           .trees = tree_axes(scenario, mesh, cluster, without_trees),
           .runs = runs_of_mesh(scenario)}};
}

}  // namespace tandem::scenarios
