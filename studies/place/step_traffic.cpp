#include "studies/place/step_traffic.h"

#include <algorithm>
#include <map>

#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/communicators.h"
#include "sim/collective_cost.h"

namespace tandem::studies {
namespace {

/// Returns the same ranks on nodes that nothing tells apart, so that they fold well: what a step sends does not depend on its
/// nodes.
Scenario on_its_own(Scenario scenario) {
  scenario.cluster.gpus = scenario.parallelism.world_size();
  scenario.cluster.other_gpus.clear();
  scenario.cluster.link_faults.clear();
  scenario.cluster.fabric = {.kind = FabricSpec::Kind::one_switch};
  scenario.slow_gpus.clear();
  scenario.parallelism.placement = {};
  return scenario;
}

using Counts = std::map<std::pair<OpKind, Bytes>, std::int64_t>;  // how many of each

std::vector<Counts> collectives_by_communicator(const Dag& dag) {
  std::vector<Counts> found(dag.communicators.size());
  for (GroupId g = 0; g < dag.groups.size(); ++g) {
    const Group& group = dag.groups[g];
    ++found[group.communicator][{dag.tasks[dag.members_of(g).front()].op, group.bytes}];
  }
  return found;
}

}  // namespace

StepTraffic traffic_of_step(const Scenario& scenario) {
  const Scenario alone = on_its_own(scenario);
  const World world = make_world(alone, true);
  const std::vector<Counts> collectives = collectives_by_communicator(lower(alone, world));

  const Mesh mesh(scenario.parallelism);
  const Cluster cluster(scenario.cluster);
  StepTraffic traffic;
  for (CommunicatorInstance& instance : survey_communicators(scenario, mesh, cluster, Symmetry(mesh, cluster)).instances) {
    const CommunicatorId id = world.communicator(world.class_of[instance.members.front()], instance.slot);
    if (id == no_id || instance.layout.nodes < 2) continue;
    std::vector<double> bytes(instance.layout.paths.size(), 0);
    for (const auto& [collective, count] : collectives[id]) {
      const CollectiveCost cost = collective_cost(collective.first, collective.second, instance.members.size(), instance.layout,
                                                  scenario.cluster.gpu.architecture);
      bytes[cost.paths] +=
          static_cast<double>(count) * static_cast<double>(cost.bytes_per_channel) * instance.layout.paths[cost.paths].channels;
    }
    if (std::ranges::all_of(bytes, [](double b) { return b == 0; })) continue;
    traffic.communicators.push_back({instance.slot, std::move(instance.members), std::move(bytes)});
  }
  return traffic;
}

}  // namespace tandem::studies
