#include <string>

#include "scenarios/nearest.h"
#include "scenarios/validate.h"

namespace tandem {

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
  if (cluster.nics_per_node > 0 && cluster.gpus_per_node % cluster.nics_per_node != 0 &&
      cluster.nics_per_node % cluster.gpus_per_node != 0)
    refuse(document, {"cluster.nics_per_node", "cluster.gpus_per_node"},
           std::to_string(cluster.nics_per_node) + " NICs cannot be shared evenly by " + std::to_string(cluster.gpus_per_node) +
               " GPUs; nearest that can: " + joined(nearest_divisors(cluster.gpus_per_node, cluster.nics_per_node)));
}

void validate_faults(const Scenario& scenario, const YamlNode& document) {
  for (std::size_t i = 0; i < scenario.slow_gpus.size(); ++i) {
    const std::int64_t rank = scenario.slow_gpus[i].rank;
    const std::string item = "faults.slow_gpu." + std::to_string(i) + ".rank";
    if (rank >= scenario.cluster.gpus)
      refuse(document, {"faults.slow_gpu.rank", item},
             "rank " + std::to_string(rank) + " does not exist, expected 0 to " + std::to_string(scenario.cluster.gpus - 1));
  }
}

}  // namespace tandem
