#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/reading/cluster_hosts.h"

namespace tandem::studies {

struct FreeNodes {
  std::vector<std::uint32_t> nodes = {};   ///< in the order given
  std::vector<std::string> warnings = {};  ///< hosts that are free and do not fill a node
};

/// Reads the nodes that a job may have from a list of numbers and ranges ("0-3,8,12-15"), where the cluster names its hosts also
/// of host lists ("tux[0-3,12]"), or from a file of such lists, one or more to a line, in which lines that begin with # are
/// comments. A node is free if all its hosts are. Throws InputError, which names all nodes that a cluster of `nodes` nodes does
/// not have, or all that are listed twice.
FreeNodes read_free_nodes(const std::string& list_or_file, std::int64_t nodes, const ClusterHosts& hosts = {});

}  // namespace tandem::studies
