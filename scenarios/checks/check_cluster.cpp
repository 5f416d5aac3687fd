#include <algorithm>
#include <string>
#include <vector>

#include "runtime/base/nearest.h"
#include "scenarios/checks/checks.h"

namespace tandem::scenarios {

namespace {

std::string up_to(std::int64_t count) { return "expected 0 to " + std::to_string(count - 1); }

std::string item(const std::string& list, std::size_t i) { return list + "." + std::to_string(i); }

void check_pcie(const ClusterSpec& cluster, const YamlNode& document) {
  const PcieSpec& pcie = cluster.pcie;
  if (cluster.nics_per_node == 0 && (!pcie.nic_of_gpu.empty() || !pcie.ports.empty()))
    refuse(document, {"cluster.pcie", "cluster.nics_per_node"},
           "cluster.pcie is the way to NICs, and these nodes have none; expected nics_per_node 1 or more");
  const std::string nics = "cluster.pcie.nic_of_gpu";
  if (!pcie.nic_of_gpu.empty() && std::ssize(pcie.nic_of_gpu) != cluster.gpus_per_node)
    refuse(document, {nics, "cluster.gpus_per_node"},
           nics + " lists " + std::to_string(pcie.nic_of_gpu.size()) + " NICs for " + std::to_string(cluster.gpus_per_node) +
               " GPUs of a node, expected one for each");
  for (std::size_t i = 0; i < pcie.nic_of_gpu.size(); ++i) {
    if (pcie.nic_of_gpu[i] >= cluster.nics_per_node)
      refuse(document, {item(nics, i), "cluster.nics_per_node"},
             "a node has no NIC " + std::to_string(pcie.nic_of_gpu[i]) + ", " + up_to(cluster.nics_per_node));
  }
  for (std::size_t i = 0; i < pcie.ports.size(); ++i) {
    const std::string path = item("cluster.pcie.ports", i);
    for (const std::int64_t gpu : pcie.ports[i].gpus) {
      if (gpu >= cluster.gpus_per_node)
        refuse(document, {path + ".gpus", "cluster.gpus_per_node"},
               "a node has no GPU " + std::to_string(gpu) + ", " + up_to(cluster.gpus_per_node));
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (pcie.ports[j].name == pcie.ports[i].name)
        refuse(document, {path + ".name"},
               "two PCIe ports are named " + excerpt(pcie.ports[i].name) + ", expected distinct names");
    }
  }
}

void check_other_gpus(const ClusterSpec& cluster, const YamlNode& document) {
  const std::int64_t nodes = std::max<std::int64_t>(1, cluster.gpus / cluster.gpus_per_node);
  std::vector<IndexRange> before;
  for (std::size_t i = 0; i < cluster.other_gpus.size(); ++i) {
    const std::string path = item("cluster.other_gpus", i) + ".nodes";
    for (const IndexRange& range : cluster.other_gpus[i].nodes) {
      if (range.last >= nodes)
        refuse(document, {path, "cluster.gpus"}, "there is no node " + std::to_string(range.last) + ", " + up_to(nodes));
      for (const IndexRange& other : before) {
        if (range.first <= other.last && other.first <= range.last)
          refuse(document, {path},
                 "node " + std::to_string(std::max(range.first, other.first)) +
                     " stands in cluster.other_gpus twice, expected it once");
      }
      before.push_back(range);
    }
  }
}

}  // namespace

void validate_cluster(const Scenario& scenario, const YamlNode& document) {
  const ClusterSpec& cluster = scenario.cluster;
  const bool several_nodes = cluster.gpus > cluster.gpus_per_node;
  const auto refuse_size = [&](const std::string& sentence) {
    refuse(document, {"cluster.gpus", "parallelism.dp", "cluster.gpus_per_node"}, std::to_string(cluster.gpus) + sentence);
  };
  if (several_nodes && cluster.gpus % cluster.gpus_per_node != 0)
    refuse_size(" GPUs do not fill nodes of " + std::to_string(cluster.gpus_per_node) +
                "; nearest that do: " + joined(nearest_multiples(cluster.gpus_per_node, cluster.gpus)));
  if (several_nodes && cluster.nics_per_node == 0)
    refuse_size(" GPUs need several nodes, and these have no NICs; expected at most " + std::to_string(cluster.gpus_per_node));
  if (cluster.nics_per_node > 0 && cluster.pcie.nic_of_gpu.empty() && cluster.gpus_per_node % cluster.nics_per_node != 0 &&
      cluster.nics_per_node % cluster.gpus_per_node != 0)
    refuse(document, {"cluster.nics_per_node", "cluster.gpus_per_node"},
           std::to_string(cluster.nics_per_node) + " NICs cannot be shared evenly by " + std::to_string(cluster.gpus_per_node) +
               " GPUs; nearest that can: " + joined(nearest_divisors(cluster.gpus_per_node, cluster.nics_per_node)));
  check_pcie(cluster, document);
  check_other_gpus(cluster, document);
}

void validate_placement(const Scenario& scenario, const YamlNode& document) {
  const RankPlacement& placement = scenario.parallelism.placement;
  if (placement.kind != RankPlacement::Kind::listed) return;
  const std::string path = "parallelism.placement";
  const std::int64_t gpus = scenario.cluster.gpus, ranks = scenario.parallelism.world_size();
  if (std::ssize(placement.gpus) != ranks)
    refuse(document, {path, "cluster.gpus", "parallelism.dp"},
           path + " lists " + std::to_string(placement.gpus.size()) + " GPUs for " + std::to_string(ranks) + " ranks, expected " +
               (ranks == gpus ? "each" : std::to_string(ranks)) + " of 0 to " + std::to_string(gpus - 1) + " once");
  std::vector<std::int64_t> rank_on(static_cast<std::size_t>(gpus), -1);
  for (std::size_t rank = 0; rank < placement.gpus.size(); ++rank) {
    const std::uint32_t gpu = placement.gpus[rank];
    if (gpu >= gpus) refuse(document, {item(path, rank)}, "there is no GPU " + std::to_string(gpu) + ", " + up_to(gpus));
    if (rank_on[gpu] >= 0)
      refuse(document, {item(path, rank)},
             "GPU " + std::to_string(gpu) + " is given to rank " + std::to_string(rank_on[gpu]) + " and to rank " +
                 std::to_string(rank) + ", expected each GPU once");
    rank_on[gpu] = static_cast<std::int64_t>(rank);
  }
}

void validate_faults(const Scenario& scenario, const YamlNode& document) {
  for (std::size_t i = 0; i < scenario.slow_gpus.size(); ++i) {
    const std::int64_t rank = scenario.slow_gpus[i].rank;
    const std::string item = "faults.slow_gpu." + std::to_string(i) + ".rank";
    if (rank >= scenario.parallelism.world_size())
      refuse(document, {"faults.slow_gpu.rank", item},
             "rank " + std::to_string(rank) + " does not exist, " + up_to(scenario.parallelism.world_size()));
  }
  if (scenario.jitter.enabled() && scenario.training.local_steps())
    refuse(document, {"faults.jitter", "training.sync_every"},
           "faults.jitter draws one kind of step, and with training.sync_every " + std::to_string(scenario.training.sync_every) +
               " there are two; expected one of the two fields");
}

}  // namespace tandem::scenarios
