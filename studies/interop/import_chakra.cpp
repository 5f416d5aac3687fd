#include <utility>

#include "studies/chakra/chakra_run.h"
#include "studies/interop/cluster_text.h"
#include "studies/interop/import_source.h"
#include "studies/recorded/recorded_dag.h"
#include "traces/dag_file.h"

namespace tandem::studies {

/// Reads the Chakra execution traces of a run into the DAG of its step, laid on a cluster and folded.
ImportResult import_chakra(const ImportSource& /*source*/, const ImportRequest& request) {
  ImportResult result;
  const ClusterSpec cluster = cluster_base(request, result).spec;
  ChakraFiles files = read_chakra_files(request.paths);
  ChakraRun read = recorded_run_of(files, request.gpus, cluster);
  result.out = to_bytes(lay_recorded(read.run, cluster, true).dag);
  result.warnings = std::move(read.warnings);
  result.ignored = std::move(files.ignored);
  for (const std::vector<std::string>& assumed : {files.assumed, read.assumed})
    result.assumed.insert(result.assumed.end(), assumed.begin(), assumed.end());
  if (read.run.ranks.size() > 1) result.assumed.emplace_back("rank n of the traces lies on GPU n of the cluster");
  return result;
}

}  // namespace tandem::studies
