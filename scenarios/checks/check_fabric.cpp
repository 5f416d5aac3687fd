#include <optional>
#include <string>

#include "runtime/base/divide_up.h"
#include "scenarios/checks/rules.h"
#include "scenarios/spec/limits.h"
#include "topology/cluster.h"

namespace tandem::scenarios {
namespace {

/// Why the cluster cannot be, if it cannot.
std::optional<std::string> fault_in(const ClusterSpec& spec) {
  try {
    const Cluster cluster(spec);
  } catch (const TopologyError& error) {
    return error.what();
  }
  return std::nullopt;
}

ClusterSpec without_faults(ClusterSpec cluster) {
  cluster.link_faults.clear();
  return cluster;
}

std::optional<Objection> find_wrong_switch(const Scenario& scenario) {
  if (scenario.cluster.fabric.kind != FabricSpec::Kind::custom) return {};
  const auto sentence = fault_in(without_faults(scenario.cluster));
  if (!sentence) return {};
  return Objection{{"cluster.fabric.switches", "cluster.gpus"}, *sentence};
}

/// To the i-th fault, as it stands in a list or alone.
Objection to_fault(const ClusterSpec& cluster, std::size_t i, const std::string& sentence) {
  std::size_t dead = 0;
  for (const LinkFault& fault : cluster.link_faults) dead += fault.factor == 0;
  const std::string path = i < dead ? "faults.dead_link" : "faults.slow_link";
  return {{path + "." + std::to_string(i < dead ? i : i - dead), path}, sentence};
}

std::optional<Objection> find_missing_link(const Scenario& scenario) {
  const ClusterSpec& cluster = scenario.cluster;
  const std::int64_t nics = cluster.nics_per_node * divide_up(cluster.gpus, cluster.gpus_per_node);
  struct Place {
    LinkFault::Where where;
    const char* name;
    std::int64_t count;
  };
  const std::int64_t any = nics == 0 ? 0 : max_gpus;
  const Place places[] = {{LinkFault::Where::gpu, "GPU", cluster.gpus},
                          {LinkFault::Where::nic, "NIC", nics},
                          {LinkFault::Where::rail, "rail", cluster.nics_per_node},
                          {LinkFault::Where::leaf, "leaf", any},
                          {LinkFault::Where::pod, "pod", any}};
  for (std::size_t i = 0; i < cluster.link_faults.size(); ++i) {
    const LinkFault& fault = cluster.link_faults[i];
    for (const auto& [where, name, count] : places) {
      if (fault.where != where || fault.index < count) continue;
      return to_fault(cluster, i,
                      "there is no " + std::string(name) + " " + std::to_string(fault.index) +
                          (count == 0 ? ", for these nodes have no NICs" : ", expected 0 to " + std::to_string(count - 1)));
    }
  }
  return {};
}

/// The first fault that is one too many.
std::optional<Objection> find_fault_too_many(const Scenario& scenario) {
  const std::vector<LinkFault>& faults = scenario.cluster.link_faults;
  if (faults.empty() || !fault_in(scenario.cluster)) return {};
  ClusterSpec cluster = without_faults(scenario.cluster);
  for (std::size_t i = 0; i < faults.size(); ++i) {
    cluster.link_faults.push_back(faults[i]);
    if (const auto sentence = fault_in(cluster)) return to_fault(scenario.cluster, i, *sentence);
  }
  return {};
}

constexpr Rule rules_of_fabric[] = {rule_of<find_wrong_switch>, rule_of<find_missing_link>, rule_of<find_fault_too_many>};

}  // namespace

std::span<const Rule> fabric_rules() { return rules_of_fabric; }

}  // namespace tandem::scenarios
