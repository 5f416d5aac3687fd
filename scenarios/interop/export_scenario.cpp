#include "scenarios/interop/export_scenario.h"

#include <filesystem>

#include "scenarios/reading/document.h"

namespace tandem::scenarios {

Exported export_scenario(const std::string& path, const std::vector<std::string>& overrides, const Exporter& exporter) {
  YamlNode document = load_document(path, overrides);
  Scenario scenario = read_document(document, std::filesystem::path(path).stem().string());
  return exporter.write({std::move(scenario), std::move(document)});
}

}  // namespace tandem::scenarios
