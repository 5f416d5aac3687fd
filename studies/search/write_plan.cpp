#include "studies/search/write_plan.h"

#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "scenarios/interop/formats.h"
#include "scenarios/reading/document.h"
#include "traces/output_file.h"

namespace tandem::studies {
namespace {

std::string file_of(const Exporter& exporter, const std::string& folder) {
  return (std::filesystem::path(folder) / exporter.file).string();
}

}  // namespace

void make_plan_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw std::runtime_error("cannot write '" + folder + "': " + error.message());
  const OutputFile probe(file_of(exporters().front(), folder));  // never committed
}

void write_plan(const Plan& plan, const PlanChoices& choices, const SearchSpec& spec, const std::string& folder) {
  YamlNode document = document_of(plan, choices, spec);
  Scenario scenario = read_document(document, "winner");
  const ScenarioWithDocument read{std::move(scenario), std::move(document)};
  const std::string heading = "# " + to_text(plan, choices) + "\n";
  for (const Exporter& exporter : exporters()) {
    OutputFile file(file_of(exporter, folder));
    file.write(heading + exporter.write(read).text);
    file.commit();
  }
}

}  // namespace tandem::studies
