#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/reading/document.h"
#include "scenarios/reading/overlay.h"
#include "scenarios/reading/presets.h"
#include "scenarios/reading/yaml_mapping.h"

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

}  // namespace tandem::scenarios
