#include "studies/place/node_sites.h"

#include <map>

namespace tandem::studies {

NodeSites::NodeSites(const Cluster& cluster) : alike(cluster.is_regular()) {
  const std::int64_t nics = cluster.spec().nics_per_node;
  const Fabric& fabric = cluster.fabric();
  std::map<std::vector<std::uint32_t>, std::uint32_t> leaves;
  std::map<std::uint32_t, std::uint32_t> pods;
  for (std::int64_t node = 0; node < cluster.nodes(); ++node) {
    std::vector<std::uint32_t> switches;
    for (std::int64_t nic = 0; nic < nics; ++nic) switches.push_back(fabric.leaf_of(node * nics + nic));
    std::uint32_t above = 0;
    if (!switches.empty()) {
      const topology::Fabric::Bundle* const up = fabric.bundle_up(switches.front());
      above = up == nullptr ? switches.front() : up->upper;
    }
    leaf.push_back(leaves.try_emplace(std::move(switches), static_cast<std::uint32_t>(leaves.size())).first->second);
    pod.push_back(pods.try_emplace(above, static_cast<std::uint32_t>(pods.size())).first->second);
  }
}

}  // namespace tandem::studies
