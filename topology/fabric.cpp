#include "topology/fabric.h"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/connected_components.hpp>
#include <boost/graph/topological_sort.hpp>
#include <cmath>
#include <map>

#include "runtime/base/divide_up.h"
#include "runtime/base/si.h"
#include "topology/fabric_graph.h"

namespace tandem::topology {
namespace {

double oversubscription(const FabricSpec& spec, std::size_t tier) {
  return tier < spec.oversubscription.size() ? spec.oversubscription[tier] : 1.0;
}

/// Returns the number of cables, each as fast as a NIC, that comes nearest to the bandwidth of `ports` NICs; at least one.
std::int64_t cables_for(double ports) { return std::max<std::int64_t>(1, std::llround(ports)); }

std::string numbered(const char* name, std::int64_t number) { return name + std::to_string(number); }

}  // namespace

Fabric::Fabric(const ClusterSpec& cluster)
    : spec_(cluster.fabric),
      nics_per_node_(cluster.nics_per_node),
      nics_(divide_up(cluster.gpus, cluster.gpus_per_node) * cluster.nics_per_node) {
  if (nics_ == 0) return;
  const BytesPerSecond port = cluster.nic_gbps * bytes_per_gbit * cluster.nic_efficiency;
  switch (spec_.kind) {
    case FabricSpec::Kind::fat_tree:
      build_fat_tree(port);
      break;
    case FabricSpec::Kind::dragonfly_plus:
      build_dragonfly_plus(port);
      break;
    case FabricSpec::Kind::one_switch:
      add_switch("switch", 0);
      break;
    case FabricSpec::Kind::custom:
      build_custom(cluster.nic_efficiency);
      break;
  }
  break_links(cluster.link_faults);
  connect();
  check_connected();
}

std::uint32_t Fabric::add_switch(std::string name, int level) {
  up_.push_back(none);
  switches_.push_back({std::move(name), level});
  return static_cast<std::uint32_t>(switches_.size() - 1);
}

void Fabric::add_bundle(std::string name, Tier tier, std::uint32_t lower, std::uint32_t upper, std::int64_t cables,
                        BytesPerSecond total) {
  const auto id = static_cast<std::uint32_t>(bundles_.size());
  bundles_.push_back(
      {std::move(name), tier, id, lower, upper, static_cast<std::uint32_t>(cables), total / static_cast<double>(cables)});
}

std::int64_t Fabric::leaf_count() const {
  const std::int64_t nodes = nics_ / nics_per_node_;
  return spec_.rail_optimized ? divide_up(nodes, spec_.leaf_ports) * nics_per_node_ : divide_up(nics_, spec_.leaf_ports);
}

std::uint32_t Fabric::add_leaves() {
  const std::int64_t leaves = leaf_count();
  for (std::int64_t leaf = 0; leaf < leaves; ++leaf) add_switch(numbered("leaf", leaf), 0);
  return static_cast<std::uint32_t>(leaves);
}

void Fabric::build_fat_tree(BytesPerSecond port) {
  const double leaf_uplinks = static_cast<double>(spec_.leaf_ports) / oversubscription(spec_, 1);
  const double pod_uplinks = leaf_uplinks * static_cast<double>(spec_.pod_leaves) / oversubscription(spec_, 2);
  const std::uint32_t leaves = add_leaves();
  const bool pods = spec_.tiers >= 3;
  const std::int64_t spines = pods ? divide_up(leaves, spec_.pod_leaves) : 1;
  const std::uint32_t first_spine = leaves;
  for (std::int64_t s = 0; s < spines; ++s) add_switch(pods ? numbered("pod", s) : "spine", 1);
  for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) {
    const std::uint32_t spine = first_spine + (pods ? leaf / static_cast<std::uint32_t>(spec_.pod_leaves) : 0);
    add_bundle(numbered("leaf", leaf), Tier::leaf, leaf, spine, cables_for(leaf_uplinks), port * leaf_uplinks);
  }
  if (!pods) return;
  const std::uint32_t core = add_switch("core", 2);
  for (std::uint32_t pod = 0; pod < spines; ++pod)
    add_bundle(numbered("pod", pod), Tier::spine, first_spine + pod, core, cables_for(pod_uplinks), port * pod_uplinks);
}

// Shpiner et al., "Dragonfly+: Low Cost Topology for Scaling Datacenters" (HiPINEB 2017): a group is a two-tier Clos network,
// whose spines share their global cables out evenly among the other groups. Routes are the shortest; detours through a third
// group are not taken.
void Fabric::build_dragonfly_plus(BytesPerSecond port) {
  const double leaf_uplinks = static_cast<double>(spec_.leaf_ports) / oversubscription(spec_, 1);
  const double group_uplinks = leaf_uplinks * static_cast<double>(spec_.pod_leaves) / oversubscription(spec_, 2);
  const std::uint32_t leaves = add_leaves();
  const auto groups = static_cast<std::uint32_t>(divide_up(leaves, spec_.pod_leaves));
  for (std::uint32_t group = 0; group < groups; ++group) add_switch(numbered("group", group), 1);
  for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) {
    const std::uint32_t group = leaves + leaf / static_cast<std::uint32_t>(spec_.pod_leaves);
    add_bundle(numbered("leaf", leaf), Tier::leaf, leaf, group, cables_for(leaf_uplinks), port * leaf_uplinks);
  }
  for (std::uint32_t a = 0; a < groups; ++a) {
    for (std::uint32_t b = a + 1; b < groups; ++b) {
      const double uplinks = group_uplinks / (groups - 1);
      add_bundle(numbered("group", a) + "-" + std::to_string(b), Tier::spine, leaves + a, leaves + b, cables_for(uplinks),
                 port * uplinks);
    }
  }
}

void Fabric::build_custom(double efficiency) {
  std::map<std::string, std::uint32_t> by_name;
  for (const SwitchSpec& spec : spec_.switches) by_name[spec.name] = add_switch(spec.name, 0);
  custom_leaf_.assign(static_cast<std::size_t>(nics_), none);
  for (const SwitchSpec& spec : spec_.switches) {
    for (const IndexRange& range : spec.nics) {
      const std::int64_t last = std::min(range.last, nics_ - 1);
      for (std::int64_t nic = range.first; nic <= last; ++nic)
        custom_leaf_[static_cast<std::size_t>(nic)] = by_name.at(spec.name);
    }
  }
  const auto loose = std::ranges::find(custom_leaf_, none) - custom_leaf_.begin();
  if (loose < nics_)
    throw TopologyError("NIC " + std::to_string(loose % nics_per_node_) + " of node " + std::to_string(loose / nics_per_node_) +
                        " hangs on no switch, expected a switch with NIC " + std::to_string(loose) + " among its nics");
  using Up = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;
  Up up(spec_.switches.size());
  for (const SwitchSpec& spec : spec_.switches) {
    for (const SwitchSpec::Uplink& uplink : spec.up) boost::add_edge(by_name.at(spec.name), by_name.at(uplink.to), up);
  }
  std::vector<std::uint32_t> tops_first;
  try {
    boost::topological_sort(up, std::back_inserter(tops_first));
  } catch (const boost::not_a_dag&) {
    throw TopologyError("the uplinks of the switches lead in a circle; expected each to lead to switches further up");
  }
  for (auto lower = tops_first.rbegin(); lower != tops_first.rend(); ++lower) {
    for (const auto edge : boost::make_iterator_range(boost::out_edges(*lower, up))) {
      int& level = switches_[boost::target(edge, up)].level;
      level = std::max(level, switches_[*lower].level + 1);
    }
  }
  for (const SwitchSpec& spec : spec_.switches) {
    const std::uint32_t lower = by_name.at(spec.name);
    for (const SwitchSpec::Uplink& uplink : spec.up)
      add_bundle(spec.name + "-" + uplink.to, switches_[lower].level == 0 ? Tier::leaf : Tier::spine, lower,
                 by_name.at(uplink.to), uplink.cables,
                 static_cast<double>(uplink.cables) * uplink.gbps * bytes_per_gbit * efficiency);
  }
}

void Fabric::break_links(std::span<const LinkFault> faults) {
  for (const LinkFault& fault : faults) {
    if (fault.where != LinkFault::Where::leaf && fault.where != LinkFault::Where::pod) continue;
    const Tier tier = fault.where == LinkFault::Where::leaf ? Tier::leaf : Tier::spine;
    std::int64_t number = 0;
    const auto found = std::ranges::find_if(bundles_, [&](const Bundle& b) { return b.tier == tier && number++ == fault.index; });
    if (found == bundles_.end() && number == 0)
      throw TopologyError(std::string("no ") + (tier == Tier::leaf ? "leaf" : "pod") + " of this fabric has cables up");
    if (found == bundles_.end())
      throw TopologyError(std::string("there is no ") + (tier == Tier::leaf ? "leaf " : "pod ") + std::to_string(fault.index) +
                          " with cables up, expected 0 to " + std::to_string(number - 1));
    if (fault.cable >= found->cables)
      throw TopologyError(found->name + " has no cable " + std::to_string(fault.cable) + ", expected 0 to " +
                          std::to_string(found->cables - 1));
    const auto first = fault.cable < 0 ? 0 : static_cast<std::uint32_t>(fault.cable);
    const std::uint32_t last = fault.cable < 0 ? found->cables : first + 1;
    for (std::uint32_t cable = first; cable < last; ++cable) {
      double& left = faults_[found->id].try_emplace(cable, 1).first->second;
      left = std::min(left, fault.factor);
    }
  }
}

void Fabric::connect() {
  auto graph = std::make_shared<Graph>(switches_.size());
  for (const Bundle& bundle : bundles_) {
    if (!(capacity(bundle.id) > 0)) continue;
    boost::add_edge(bundle.lower, bundle.upper, bundle.id, *graph);
    std::uint32_t& up = up_[bundle.lower];
    is_tree_ = is_tree_ && up == none && spec_.kind != FabricSpec::Kind::dragonfly_plus;
    up = bundle.id;
  }
  graph_ = std::move(graph);
}

void Fabric::check_connected() const {
  std::vector<std::uint32_t> part(switches_.size());
  boost::connected_components(*graph_, part.data());
  for (std::int64_t nic = 1; nic < nics_; ++nic) {
    if (part[leaf_of(nic)] == part[leaf_of(0)]) continue;
    throw TopologyError("the fabric is disconnected: no way leads from " + switches_[leaf_of(0)].name + " to " +
                        switches_[leaf_of(nic)].name + ", where NIC " + std::to_string(nic % nics_per_node_) + " of node " +
                        std::to_string(nic / nics_per_node_) + " hangs");
  }
}

std::uint32_t Fabric::leaf_of(std::int64_t nic) const {
  switch (spec_.kind) {
    case FabricSpec::Kind::one_switch:
      return 0;
    case FabricSpec::Kind::custom:
      return custom_leaf_[static_cast<std::size_t>(nic)];
    default:
      const auto number = static_cast<std::uint32_t>(nic), ports = static_cast<std::uint32_t>(spec_.leaf_ports);
      if (!spec_.rail_optimized) return number / ports;
      const auto of_node = static_cast<std::uint32_t>(nics_per_node_);
      return number / of_node / ports * of_node + number % of_node;
  }
}

double Fabric::share_left(std::uint32_t bundle, std::uint32_t cable) const {
  const auto of_bundle = faults_.find(bundle);
  if (of_bundle == faults_.end()) return 1;
  const auto of_cable = of_bundle->second.find(cable);
  return of_cable == of_bundle->second.end() ? 1 : of_cable->second;
}

BytesPerSecond Fabric::capacity(std::uint32_t bundle) const {
  double cables = bundles_[bundle].cables;
  if (const auto of_bundle = faults_.find(bundle); of_bundle != faults_.end()) {
    for (const auto& [cable, left] : of_bundle->second) cables -= 1 - left;
  }
  return cables * bundles_[bundle].capacity;
}

}  // namespace tandem::topology
