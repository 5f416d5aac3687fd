#include "studies/search/mesh_network.h"

#include "scenarios/mesh/communicator_axes.h"
#include "scenarios/mesh/expert_mesh.h"
#include "scenarios/mesh/mesh.h"
#include "scenarios/mesh/rank_placement.h"
#include "sim/collective_cost.h"

namespace tandem::studies {
namespace {

ClusterSpec healthy(ClusterSpec spec) {
  spec.link_faults.clear();
  spec.fabric.routing = FlowRouting::adaptive;
  return spec;
}

bool works_in_two_levels(const Scenario& scenario) {
  return scenario.parallelism.hsdp > 0 || scenario.training.hierarchical_all_reduce || scenario.training.local_steps();
}

/// As the simulator has it, where nothing was measured among GPUs of different models.
CollectiveCost cost_of(const Scenario& scenario, OpKind op, Bytes bytes, std::size_t members, const Layout& layout) {
  const Device& gpu = scenario.cluster.gpu;
  const CollectiveCost cost = scenario.cluster.other_gpus.empty() ? collective_cost(op, bytes, members, layout, gpu)
                                                                  : collective_cost(op, bytes, members, layout, gpu.architecture);
  return at_pace(cost, 1 / gpu.site.communication);
}

}  // namespace

const MeshNetwork::OnCluster& MeshNetwork::cluster_of(const Scenario& scenario) {
  OnCluster& on = clusters_[scenario.cluster.gpus];
  if (on.cluster) return on;
  on.cluster = std::make_unique<Cluster>(healthy(scenario.cluster));
  for (LinkId id = 0; id < on.cluster->link_count(); ++id) on.links.push_back(on.cluster->unnamed_link(id));
  return on;
}

MeshNetwork::Laid& MeshNetwork::laid(const Scenario& scenario) {
  const ParallelismSpec& p = scenario.parallelism;
  const Key key{.gpus = scenario.cluster.gpus,
                .tp = p.tp,
                .pp = p.pp,
                .cp = p.cp,
                .ep = p.ep,
                .etp = p.etp,
                .dp = p.dp,
                .zero = p.zero,
                .own_expert_axis = p.own_expert_axis,
                .local_steps = scenario.training.local_steps(),
                .order = p.order,
                .placement = p.placement.kind,
                .listed_gpus = p.placement.gpus};
  const auto known = laid_.find(key);
  if (known != laid_.end()) return known->second;

  const Cluster& cluster = *cluster_of(scenario).cluster;
  const Mesh mesh(p);
  const RankPlaces places(scenario);
  const auto gpus_of = [&](const std::vector<std::uint32_t>& ranks) {
    std::vector<std::uint32_t> gpus;
    for (const std::uint32_t rank : ranks) gpus.push_back(places.gpu(rank));
    return gpus;
  };
  Laid laid;
  const std::vector<std::uint32_t> data = gpus_of(mesh.members(0, data_axes(scenario)));
  laid.data_members = data.size();
  if (data.size() > 1) laid.data = lay_group(cluster, data, algorithms(scenario, Slot::data));
  if (scenario.model.moe.experts > 0) {
    const std::vector<std::uint32_t> replicas = gpus_of(ExpertMesh(p, mesh).members(0, ExpertAxis::replica));
    laid.expert_members = replicas.size();
    if (replicas.size() > 1) laid.expert_data = lay_group(cluster, replicas, algorithms(scenario, Slot::expert_data));
  }
  for (std::int32_t stage = 0; p.pp > 1 && stage < p.pp; ++stage) {
    Coordinates from, to;
    from[Axis::pp] = stage;
    to[Axis::pp] = static_cast<std::int32_t>((stage + 1) % p.pp);
    laid.pairs.push_back(lay_pair(cluster, places.gpu(mesh.rank(from)), places.gpu(mesh.rank(to))));
  }
  return laid_.emplace(key, std::move(laid)).first->second;
}

std::size_t MeshNetwork::data_members(const Scenario& scenario, bool experts) {
  const Laid& all = laid(scenario);
  return experts ? all.expert_members : all.data_members;
}

Seconds MeshNetwork::data(const Scenario& scenario, OpKind op, Bytes bytes, bool experts) {
  if (works_in_two_levels(scenario) || bytes == 0) return 0;
  Laid& all = laid(scenario);
  const std::size_t members = experts ? all.expert_members : all.data_members;
  if (members < 2) return 0;
  const auto [time, is_new] = all.data_times.try_emplace({op, bytes, experts});
  if (is_new) {
    const Layout& layout = experts ? all.expert_data : all.data;
    time->second = uncontended_time(cost_of(scenario, op, bytes, members, layout), layout, cluster_of(scenario).links);
  }
  return time->second;
}

std::vector<Seconds> MeshNetwork::between_stages(const Scenario& scenario, Bytes bytes) {
  std::vector<Seconds> times;
  for (const Layout& layout : laid(scenario).pairs)
    times.push_back(uncontended_time(cost_of(scenario, OpKind::send, bytes, 2, layout), layout, cluster_of(scenario).links));
  return times;
}

}  // namespace tandem::studies
