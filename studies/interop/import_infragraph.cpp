#include "studies/interop/cluster_text.h"
#include "studies/interop/infragraph.h"

namespace tandem::studies {

/// Reads an infrastructure of InfraGraph into a cluster: GPUs and NICs of its hosts, its switches as a custom fabric.
ImportResult import_infragraph(const ImportSource& /*source*/, const ImportRequest& request) {
  const std::string& file = request.paths.front();
  ImportResult result;
  ClusterGraph graph = read_infragraph(read_large_text(file, "an infrastructure of InfraGraph in YAML"), file, result);
  result.out = cluster_of_graph(std::move(graph), file, request, result);
  return result;
}

}  // namespace tandem::studies
