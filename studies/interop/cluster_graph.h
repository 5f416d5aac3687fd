#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "studies/interop/import_source.h"

namespace tandem::studies {

/// A cluster as its owner's files describe it: hosts, switches and the cables between them, each as they were found.
struct ClusterGraph {
  /// Where a NIC of a host hangs.
  struct Nic {
    std::size_t on = 0;  ///< a switch
    double gbps = 0;     ///< per direction; 0: not known
  };
  struct Host {
    std::string name;
    std::vector<Nic> nics = {};  ///< in the order of their numbers
  };
  struct Cable {
    std::size_t one = 0, other = 0;  ///< switches; where `is_upward`, the first is below
    std::int64_t count = 1;
    double gbps = 0;  ///< of each, per direction; 0: not known
  };
  std::vector<Host> hosts = {};
  std::vector<std::string> switches = {};  ///< names, distinct
  std::vector<Cable> cables = {};
  bool is_upward = false;          ///< the cables know which end is up; otherwise the distance from the hosts says so
  std::int64_t gpus_per_host = 0;  ///< 0: not known
  double nvlink_GBps = 0;          ///< 0: not known
};

/// Writes the cluster as a preset that `cluster: {preset: ./FILE}` takes: what the graph does not say comes from the preset
/// `request.cluster` or the usual one, and switches are a custom fabric. Adds to `result` what was assumed and what is left out.
///
/// All nodes of a simulated cluster are alike. Hosts with as many NICs as lets most NICs take part are kept, the others left out.
/// Switches that lie on no shortest way between two of the kept hosts are left out. Switches that lead down to the same switches
/// are one, with all their cables, as in any fabric of Tandem (topology/fabric.h).
///
/// Throws InputError at `file` where no hosts or no switches are left, where the graph is in parts, and where `request.gpus` does
/// not fit the hosts.
std::string cluster_of_graph(ClusterGraph graph, const std::string& file, const ImportRequest& request, ImportResult& result);

}  // namespace tandem::studies
