#include "studies/search/write_plan.h"

#include <filesystem>

#include "scenarios/interop/interop.h"
#include "scenarios/reading/document.h"
#include "traces/output_file.h"

namespace tandem::studies {
namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  OutputFile file(path.string());
  file.write(text);
  file.commit();
}

}  // namespace

void write_plan(const Plan& plan, const PlanChoices& choices, const SearchSpec& spec, const std::string& folder) {
  std::filesystem::create_directories(folder);
  const std::filesystem::path place(folder);
  const YamlNode document = document_of(plan, choices, spec);
  const Scenario scenario = read_document(document, "winner");
  const std::string heading = "# " + to_text(plan, choices) + "\n";
  write(place / "scenario.yaml", heading + scenario_yaml(document));
  write(place / "megatron.args", heading + megatron_arguments(scenario).text);
  write(place / "torchtitan.toml", heading + torchtitan_toml(scenario).text);
  write(place / "nccl.env", heading + nccl_environment(scenario).text);
}

}  // namespace tandem::studies
