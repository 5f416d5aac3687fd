#include <optional>
#include <string>

#include "runtime/base/divide_up.h"
#include "scenarios/checks/checks.h"
#include "scenarios/reading/sections.h"
#include "topology/cluster.h"

namespace tandem::scenarios {
namespace {

/// Why the cluster cannot be, if it cannot.
std::optional<std::string> objection(const ClusterSpec& spec) {
  try {
    const Cluster cluster(spec);
  } catch (const TopologyError& error) {
    return error.what();
  }
  return std::nullopt;
}

/// Of the i-th fault, as it stands in a list or alone.
void refuse_fault(const ClusterSpec& cluster, std::size_t i, const YamlNode& document, const std::string& sentence) {
  std::size_t dead = 0;
  for (const LinkFault& fault : cluster.link_faults) dead += fault.factor == 0;
  const std::string path = i < dead ? "faults.dead_link" : "faults.slow_link";
  refuse(document, {path + "." + std::to_string(i < dead ? i : i - dead), path}, sentence);
}

void check_numbers(const ClusterSpec& cluster, const YamlNode& document) {
  const std::int64_t nics = cluster.nics_per_node * divide_up(cluster.gpus, cluster.gpus_per_node);
  for (std::size_t i = 0; i < cluster.link_faults.size(); ++i) {
    const LinkFault& fault = cluster.link_faults[i];
    const auto check = [&](LinkFault::Where where, const std::string& name, std::int64_t count) {
      if (fault.where != where || fault.index < count) return;
      refuse_fault(cluster, i, document,
                   "there is no " + name + " " + std::to_string(fault.index) +
                       (count == 0 ? ", for these nodes have no NICs" : ", expected 0 to " + std::to_string(count - 1)));
    };
    check(LinkFault::Where::gpu, "GPU", cluster.gpus);
    check(LinkFault::Where::nic, "NIC", nics);
    check(LinkFault::Where::rail, "rail", cluster.nics_per_node);
    check(LinkFault::Where::leaf, "leaf", nics == 0 ? 0 : max_gpus);
    check(LinkFault::Where::pod, "pod", nics == 0 ? 0 : max_gpus);
  }
}

}  // namespace

void validate_fabric(const Scenario& scenario, const YamlNode& document) {
  ClusterSpec cluster = scenario.cluster;
  const std::vector<LinkFault> faults = std::move(cluster.link_faults);
  cluster.link_faults.clear();
  if (cluster.fabric.kind == FabricSpec::Kind::custom) {
    if (const auto sentence = objection(cluster)) refuse(document, {"cluster.fabric.switches", "cluster.gpus"}, *sentence);
  }
  check_numbers(scenario.cluster, document);
  cluster.link_faults = faults;
  if (faults.empty() || !objection(cluster)) return;
  // Which of them is one too many?
  cluster.link_faults.clear();
  for (std::size_t i = 0; i < faults.size(); ++i) {
    cluster.link_faults.push_back(faults[i]);
    if (const auto sentence = objection(cluster)) refuse_fault(scenario.cluster, i, document, *sentence);
  }
}

}  // namespace tandem::scenarios
