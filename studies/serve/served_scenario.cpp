#include "studies/serve/served_scenario.h"

#include <nlohmann/json.hpp>

#include "runtime/base/text_file.h"
#include "scenarios/interop/interop.h"
#include "studies/serve/files_within.h"

namespace tandem::studies {
namespace {

constexpr std::size_t most_changes = 256, longest_change = 4096;

std::string text_field(const nlohmann::ordered_json& body, const char* key) {
  const auto found = body.find(key);
  if (found == body.end() || !found->is_string())
    throw InputError({"the request", 0, 0}, std::string(key) + " is missing, expected a text");
  return found->get<std::string>();
}

}  // namespace

ServedScenario ServedScenario::from_json(const nlohmann::ordered_json& body) {
  const Place request{"the request", 0, 0};
  if (!body.is_object()) throw InputError(request, "it is no object, expected one with name, text and changes");
  ServedScenario scenario{.name = text_field(body, "name"), .text = text_field(body, "text"), .changes = {}};
  scenario.name = std::filesystem::path(scenario.name).filename().string();
  if (scenario.name.empty()) scenario.name = "scenario.yaml";
  check_text(scenario.text, scenario.name, a_scenario);
  const auto changes = body.find("changes");
  if (changes == body.end()) return scenario;
  if (!changes->is_array() || changes->size() > most_changes)
    throw InputError(request,
                     "changes is no list, expected at most " + std::to_string(most_changes) + " texts such as parallelism.tp=4");
  for (const auto& change : *changes) {
    if (!change.is_string() || change.get_ref<const std::string&>().size() > longest_change)
      throw InputError(request, "a change is no short text, expected one such as parallelism.tp=4");
    scenario.changes.push_back(change.get<std::string>());
  }
  return scenario;
}

ScenarioSource source_of(const ServedScenario& scenario, const std::filesystem::path& folder) {
  ScenarioSource source = ScenarioSource::of_text(scenario.text, folder / scenario.name, scenario.changes);
  refuse_files_outside(source.unresolved(), folder);
  return source;
}

std::string text_of(const ServedScenario& scenario, const std::filesystem::path& folder) {
  return scenario_yaml(source_of(scenario, folder).unresolved());
}

}  // namespace tandem::studies
