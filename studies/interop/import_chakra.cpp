#include <spdlog/fmt/fmt.h>

#include "scenarios/interop/usual_clusters.h"
#include "scenarios/reading/preset_specs.h"
#include "studies/chakra/chakra_run.h"
#include "studies/interop/import_source.h"
#include "studies/recorded/recorded_dag.h"
#include "traces/dag_file.h"

namespace tandem::studies {

/// Reads the Chakra execution traces of a run into the DAG of its step, laid on a cluster and folded.
ImportResult import_chakra(const ImportSource& /*source*/, const ImportRequest& request) {
  const std::string name = request.cluster.empty() ? std::string(usual_cluster) : request.cluster;
  const ClusterSpec cluster = cluster_preset(name);
  ChakraFiles files = read_chakra_files(request.paths);
  ChakraRun read = recorded_run_of(files, request.gpus, cluster);
  const RecordedDag recorded = lay_recorded(read.run, cluster, true);
  ImportResult result{.out = to_bytes(recorded.dag),
                      .warnings = std::move(read.warnings),
                      .assumed = std::move(files.assumed),
                      .ignored = std::move(files.ignored)};
  result.assumed.insert(result.assumed.end(), read.assumed.begin(), read.assumed.end());
  if (request.cluster.empty())
    result.assumed.push_back("the ranks lie on " + name + ", one on each GPU in their order (--cluster)");
  return result;
}

}  // namespace tandem::studies
