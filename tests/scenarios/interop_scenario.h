#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/interop/interop.h"
#include "scenarios/reading/document.h"
#include "scenarios/reading/overlay.h"
#include "scenarios/reading/presets.h"
#include "scenarios/reading/yaml_mapping.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::scenarios {

/// A scenario and the cluster it was read with.
struct Written {
  Scenario scenario;
  YamlNode cluster;
};

inline Written written(const std::string& text, const std::string& path, const std::vector<std::string>& overrides) {
  const YamlNode document = parse_document(text, path, overrides);
  return {.scenario = read_document(document, "s"), .cluster = *document.find("cluster")};
}

/// Reads the document with that cluster and so many of its GPUs.
inline Scenario read_with(YamlNode document, const Written& original, std::int64_t gpus) {
  put(document, "cluster", original.cluster);
  put(section_of(document, "cluster"), "gpus", gpus);
  tidy_names(document);
  resolve_presets(document, "");
  return read_document(document, "s");
}

/// Reads what was imported with so many GPUs of the base scenario's cluster.
inline Scenario scenario_of(const Imported& imported, std::int64_t gpus = 8) {
  const std::string count = std::to_string(gpus);
  return read_with(imported.document,
                   written(base_text(), "s.yaml",
                           {"cluster.gpus=" + count, "parallelism.tp=1", "parallelism.pp=1",
                            "parallelism.dp=", "training.global_batch=" + count}),
                   gpus);
}

}  // namespace tandem::scenarios
