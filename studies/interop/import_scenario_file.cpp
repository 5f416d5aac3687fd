#include <utility>

#include "scenarios/interop/import_scenario.h"
#include "studies/interop/import_source.h"

namespace tandem::studies {

/// Reads another program's configuration into a scenario, by the importer of the source's name.
ImportResult import_scenario_file(const ImportSource& source, const ImportRequest& request) {
  ImportedScenario imported = import_scenario(
      request.paths.front(), *find_importer(source.name),
      {.cluster = request.cluster, .gpus = request.gpus, .overrides = request.overrides, .environment = request.environment});
  return {.out = std::move(imported.yaml),
          .warnings = std::move(imported.warnings),
          .assumed = std::move(imported.assumed),
          .ignored = std::move(imported.ignored)};
}

}  // namespace tandem::studies
