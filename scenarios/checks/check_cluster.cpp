#include <algorithm>
#include <string>
#include <vector>

#include "runtime/base/nearest.h"
#include "scenarios/checks/rules.h"

namespace tandem::scenarios {
namespace {

std::string up_to(std::int64_t count) { return "expected 0 to " + std::to_string(count - 1); }

std::string item(const std::string& list, std::size_t i) { return list + "." + std::to_string(i); }

bool has_several_nodes(const ClusterSpec& cluster) { return cluster.gpus > cluster.gpus_per_node; }

Objection wrong_size(const Scenario& s, const std::string& sentence) {
  return {{"cluster.gpus", "parallelism.dp", "cluster.gpus_per_node"}, std::to_string(s.cluster.gpus) + sentence};
}

constexpr Rule nodes_are_whole{
    .sizes = Sizes::gpus,
    .holds = [](const Scenario& s) { return !has_several_nodes(s.cluster) || s.cluster.gpus % s.cluster.gpus_per_node == 0; },
    .objection =
        [](const Scenario& s) {
          const std::int64_t node = s.cluster.gpus_per_node;
          return wrong_size(s, " GPUs do not fill nodes of " + std::to_string(node) +
                                   "; nearest that do: " + joined(nearest_multiples(node, s.cluster.gpus)));
        }};

constexpr Rule several_nodes_have_nics{
    .holds = [](const Scenario& s) { return !has_several_nodes(s.cluster) || s.cluster.nics_per_node > 0; },
    .objection =
        [](const Scenario& s) {
          return wrong_size(
              s, " GPUs need several nodes, and these have no NICs; expected at most " + std::to_string(s.cluster.gpus_per_node));
        }};

constexpr Rule gpus_share_nics_evenly{
    .holds =
        [](const Scenario& s) {
          const ClusterSpec& cluster = s.cluster;
          return cluster.nics_per_node == 0 || !cluster.pcie.nic_of_gpu.empty() ||
                 cluster.gpus_per_node % cluster.nics_per_node == 0 || cluster.nics_per_node % cluster.gpus_per_node == 0;
        },
    .objection = [](const Scenario& s) -> Objection {
      const ClusterSpec& cluster = s.cluster;
      return {{"cluster.nics_per_node", "cluster.gpus_per_node"},
              std::to_string(cluster.nics_per_node) + " NICs cannot be shared evenly by " +
                  std::to_string(cluster.gpus_per_node) +
                  " GPUs; nearest that can: " + joined(nearest_divisors(cluster.gpus_per_node, cluster.nics_per_node))};
    }};

std::optional<Objection> find_wrong_nic(const Scenario& s) {
  const ClusterSpec& cluster = s.cluster;
  const PcieSpec& pcie = cluster.pcie;
  if (cluster.nics_per_node == 0 && (!pcie.nic_of_gpu.empty() || !pcie.ports.empty()))
    return Objection{{"cluster.pcie", "cluster.nics_per_node"},
                     "cluster.pcie is the way to NICs, and these nodes have none; expected nics_per_node 1 or more"};
  const std::string nics = "cluster.pcie.nic_of_gpu";
  if (!pcie.nic_of_gpu.empty() && std::ssize(pcie.nic_of_gpu) != cluster.gpus_per_node)
    return Objection{{nics, "cluster.gpus_per_node"},
                     nics + " lists " + std::to_string(pcie.nic_of_gpu.size()) + " NICs for " +
                         std::to_string(cluster.gpus_per_node) + " GPUs of a node, expected one for each"};
  for (std::size_t i = 0; i < pcie.nic_of_gpu.size(); ++i) {
    if (pcie.nic_of_gpu[i] >= cluster.nics_per_node)
      return Objection{{item(nics, i), "cluster.nics_per_node"},
                       "a node has no NIC " + std::to_string(pcie.nic_of_gpu[i]) + ", " + up_to(cluster.nics_per_node)};
  }
  return {};
}

std::optional<Objection> find_wrong_port(const Scenario& s) {
  const std::vector<PcieSpec::Port>& ports = s.cluster.pcie.ports;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const std::string path = item("cluster.pcie.ports", i);
    for (const std::int64_t gpu : ports[i].gpus) {
      if (gpu >= s.cluster.gpus_per_node)
        return Objection{{path + ".gpus", "cluster.gpus_per_node"},
                         "a node has no GPU " + std::to_string(gpu) + ", " + up_to(s.cluster.gpus_per_node)};
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (ports[j].name == ports[i].name)
        return Objection{{path + ".name"}, "two PCIe ports are named " + excerpt(ports[i].name) + ", expected distinct names"};
    }
  }
  return {};
}

std::optional<Objection> find_wrong_node(const Scenario& s) {
  const ClusterSpec& cluster = s.cluster;
  const std::int64_t nodes = std::max<std::int64_t>(1, cluster.gpus / cluster.gpus_per_node);
  std::vector<IndexRange> before;
  for (std::size_t i = 0; i < cluster.other_gpus.size(); ++i) {
    const std::string path = item("cluster.other_gpus", i) + ".nodes";
    for (const IndexRange& range : cluster.other_gpus[i].nodes) {
      if (range.last >= nodes)
        return Objection{{path, "cluster.gpus"}, "there is no node " + std::to_string(range.last) + ", " + up_to(nodes)};
      for (const IndexRange& other : before) {
        if (range.first <= other.last && other.first <= range.last)
          return Objection{{path},
                           "node " + std::to_string(std::max(range.first, other.first)) +
                               " stands in cluster.other_gpus twice, expected it once"};
      }
      before.push_back(range);
    }
  }
  return {};
}

constexpr Rule rules_of_cluster[] = {nodes_are_whole,         several_nodes_have_nics,  gpus_share_nics_evenly,
                                     rule_of<find_wrong_nic>, rule_of<find_wrong_port>, rule_of<find_wrong_node>};

std::optional<Objection> find_wrong_rank(const Scenario& scenario) {
  const RankPlacement& placement = scenario.parallelism.placement;
  if (placement.kind != RankPlacement::Kind::listed) return {};
  const std::string path = "parallelism.placement";
  const std::int64_t gpus = scenario.cluster.gpus, ranks = scenario.parallelism.world_size();
  if (std::ssize(placement.gpus) != ranks)
    return Objection{{path, "cluster.gpus", "parallelism.dp"},
                     path + " lists " + std::to_string(placement.gpus.size()) + " GPUs for " + std::to_string(ranks) +
                         " ranks, expected " + (ranks == gpus ? "each" : std::to_string(ranks)) + " of 0 to " +
                         std::to_string(gpus - 1) + " once"};
  std::vector<std::int64_t> rank_on(static_cast<std::size_t>(gpus), -1);
  for (std::size_t rank = 0; rank < placement.gpus.size(); ++rank) {
    const std::uint32_t gpu = placement.gpus[rank];
    if (gpu >= gpus) return Objection{{item(path, rank)}, "there is no GPU " + std::to_string(gpu) + ", " + up_to(gpus)};
    if (rank_on[gpu] >= 0)
      return Objection{{item(path, rank)},
                       "GPU " + std::to_string(gpu) + " is given to rank " + std::to_string(rank_on[gpu]) + " and to rank " +
                           std::to_string(rank) + ", expected each GPU once"};
    rank_on[gpu] = static_cast<std::int64_t>(rank);
  }
  return {};
}

constexpr Rule rules_of_placement[] = {rule_of<find_wrong_rank>};

std::optional<Objection> find_missing_rank(const Scenario& scenario) {
  for (std::size_t i = 0; i < scenario.slow_gpus.size(); ++i) {
    const std::int64_t rank = scenario.slow_gpus[i].rank;
    if (rank >= scenario.parallelism.world_size())
      return Objection{{"faults.slow_gpu.rank", item("faults.slow_gpu", i) + ".rank"},
                       "rank " + std::to_string(rank) + " does not exist, " + up_to(scenario.parallelism.world_size())};
  }
  return {};
}

constexpr Rule jitter_draws_one_kind_of_step{
    .holds = [](const Scenario& s) { return !s.jitter.enabled() || !s.training.local_steps(); },
    .objection = [](const Scenario& s) -> Objection {
      return {{"faults.jitter", "training.sync_every"},
              "faults.jitter draws one kind of step, and with training.sync_every " + std::to_string(s.training.sync_every) +
                  " there are two; expected one of the two fields"};
    }};

constexpr Rule rules_of_faults[] = {rule_of<find_missing_rank>, jitter_draws_one_kind_of_step};

}  // namespace

std::span<const Rule> cluster_rules() { return rules_of_cluster; }
std::span<const Rule> placement_rules() { return rules_of_placement; }
std::span<const Rule> fault_rules() { return rules_of_faults; }

}  // namespace tandem::scenarios
