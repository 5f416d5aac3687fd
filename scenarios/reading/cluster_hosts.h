#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/reading/yaml_tree.h"

namespace tandem::scenarios {

/// The names of a cluster's hosts, for who takes nodes by name (`tandem place`). Node n of the cluster, an NVLink domain, has the
/// names from n * per_node on.
struct ClusterHosts {
  std::vector<std::string> names = {};  ///< none where the cluster names none
  std::int64_t per_node = 1;            ///< more than one where NVLink joins several hosts, as in a GB200 NVL72
};

/// Reads `hosts` (host lists of Slurm, runtime/base/host_list.h) and `hosts_per_node` of a cluster. Throws InputError, also where
/// a name stands twice, or where the hosts fill no whole nodes.
ClusterHosts read_cluster_hosts(const YamlNode& cluster);

}  // namespace tandem::scenarios
