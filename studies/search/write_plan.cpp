#include "studies/search/write_plan.h"

#include <filesystem>

#include "scenarios/interop/formats.h"
#include "scenarios/reading/document.h"
#include "traces/output_file.h"

namespace tandem::studies {

void write_plan(const Plan& plan, const PlanChoices& choices, const SearchSpec& spec, const std::string& folder) {
  std::filesystem::create_directories(folder);
  YamlNode document = document_of(plan, choices, spec);
  Scenario scenario = read_document(document, "winner");
  const ScenarioWithDocument read{std::move(scenario), std::move(document)};
  const std::string heading = "# " + to_text(plan, choices) + "\n";
  for (const Exporter& exporter : exporters()) {
    OutputFile file((std::filesystem::path(folder) / exporter.file).string());
    file.write(heading + exporter.write(read).text);
    file.commit();
  }
}

}  // namespace tandem::studies
