// What a page sends to `tandem serve`.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/base/input_error.h"
#include "studies/serve/form.h"
#include "studies/serve/pinned_study.h"
#include "studies/serve/served_scenario.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/tree_mutator.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::fuzz {
namespace {

using Json = nlohmann::ordered_json;

Json json_of_request(const std::string& bytes) {
  Json body = Json::parse(bytes, nullptr, false);
  if (body.is_discarded()) throw InputError({"the request", 0, 0}, "it is no JSON");
  return body;
}

std::filesystem::path served_folder() { return std::filesystem::path(scratch_file("nothing", "")).parent_path(); }

/// What a field may be is not refused where it is tried.
void ask_for_form(const std::string& bytes) {
  studies::ServedScenario scenario = studies::ServedScenario::from_json(json_of_request(bytes));
  const studies::Form form = studies::form_of(studies::source_of(scenario, served_folder()));
  studies::to_json_object(form);
  for (const studies::FormField& field : form.fields) {
    if (field.path != "parallelism.tp" || field.choices.empty()) continue;
    const studies::FieldChoice& choice = field.choices.back();
    if (!choice.is_allowed) continue;
    if (form.dp_follows) scenario.changes.emplace_back("parallelism.dp=");
    scenario.changes.insert(scenario.changes.end(), choice.also.begin(), choice.also.end());
    scenario.changes.push_back(field.path + "=" + choice.value);
    require(studies::form_of(studies::source_of(scenario, served_folder())).refusals.empty(),
            "a value that is allowed is refused");
  }
}

void save_pins(const std::string& bytes) {
  const Json body = json_of_request(bytes);
  std::vector<studies::ServedScenario> pinned;
  if (body.is_array())
    for (const Json& point : body) pinned.push_back(studies::ServedScenario::from_json(point));
  studies::pinned_study(pinned, served_folder());
}

Json request() { return {{"name", "a.yaml"}, {"text", scenarios::base_text()}, {"changes", {"training.recompute=full"}}}; }

[[maybe_unused]] const Registered of_pages({
    {.name = "serve-form",
     .read = ask_for_form,
     .seeds = [] { return std::vector{request().dump()}; },
     .words_of = {"studies/serve", "scenarios/spec/names.h"},
     .mutate = mutate_json},
    {.name = "serve-pins",
     .read = save_pins,
     .seeds =
         [] {
           Json other = request();
           other["changes"] = {"parallelism.tp=2"};
           return std::vector{Json{request(), other}.dump()};
         },
     .words_of = {"studies/serve", "scenarios/spec/names.h"},
     .mutate = mutate_json},
});

}  // namespace
}  // namespace tandem::fuzz
