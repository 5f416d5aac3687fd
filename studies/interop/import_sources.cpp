#include <algorithm>
#include <utility>

#include "runtime/base/input_error.h"
#include "scenarios/interop/formats.h"
#include "studies/interop/import_source.h"

namespace tandem::studies {

using ReadImport = ImportResult(const ImportSource& source, const ImportRequest& request);

/// Each is defined in the file of its name.
ReadImport import_scenario_file, import_chakra, import_kineto, import_slurm_topology, import_nccl_tests, import_ibnetdiscover,
    import_infragraph;

namespace {

std::vector<ImportSource> all_sources() {
  using enum ImportOption;
  std::vector<ImportSource> rows;
  for (const Importer& importer : importers())
    rows.push_back({importer.name, importer.what, "a scenario", {cluster, gpus, set, env}, import_scenario_file});
  rows.push_back({"chakra",
                  "MLCommons Chakra's execution traces, NAME.RANK.et of each rank, or a folder of them",
                  "the step's DAG, to be simulated",
                  {several_paths, cluster, gpus},
                  import_chakra});
  rows.push_back({"kineto",
                  "torch.profiler's traces, a file or a folder with one of each rank",
                  "where the time of a step goes, as JSON",
                  {step},
                  import_kineto});
  rows.push_back({"nccl-tests",
                  "what nccl-tests or rccl-tests printed, as text or JSON",
                  "a profile of collectives",
                  {several_paths, cluster, gpus},
                  import_nccl_tests});
  rows.push_back(
      {"slurm-topology", "a topology.conf or topology.yaml", "a cluster", {cluster, gpus, set}, import_slurm_topology});
  rows.push_back(
      {"ibnetdiscover", "what ibnetdiscover prints of an InfiniBand fabric", "a cluster", {cluster, gpus}, import_ibnetdiscover});
  rows.push_back({"infragraph", "an infrastructure of InfraGraph in YAML", "a cluster", {cluster, gpus}, import_infragraph});
  return rows;
}

void refuse(const ImportSource& source, const std::string& option) {
  throw InputError({option, 0, 0}, "--from " + std::string(source.name) + " gives " + std::string(source.result) +
                                       " and has no use for it; expected none");
}

}  // namespace

bool ImportSource::has_use_for(ImportOption option) const { return std::ranges::find(takes, option) != takes.end(); }

std::span<const ImportSource> import_sources() {
  static const std::vector<ImportSource> all = all_sources();
  return all;
}

ImportResult import_files(const ImportSource& source, const ImportRequest& request) {
  using enum ImportOption;
  const auto check = [&](bool given, ImportOption option, const std::string& name) {
    if (given && !source.has_use_for(option)) refuse(source, name);
  };
  check(!request.cluster.empty(), cluster, "--cluster");
  check(request.gpus != 0, gpus, "--gpus");
  check(!request.overrides.empty(), set, "--set");
  check(!request.environment.empty(), env, "--env");
  check(request.step.has_value(), step, "--step");
  if (request.paths.size() > 1 && !source.has_use_for(several_paths))
    throw InputError({request.paths[1], 0, 0}, "is a second file, and --from " + std::string(source.name) + " takes one");
  return source.read(source, request);
}

}  // namespace tandem::studies
