#include "studies/serve/form.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "scenarios/reading/document.h"
#include "scenarios/reading/overlay.h"
#include "studies/serve/form_fields.h"

namespace tandem::studies {
namespace {

using Json = nlohmann::ordered_json;

bool states_gpus(const YamlNode& document) {
  const YamlNode* gpus = find_path(document, "cluster.gpus");
  return gpus != nullptr && gpus->kind == YamlNode::Kind::scalar;
}

class Asker {
 public:
  Asker(const YamlNode& document, const std::string& name) : document_(document), name_(name) {
    // What remains of the GPUs is replicas, unless the GPUs are what follows.
    if (states_gpus(document_)) apply_override(document_, "parallelism.dp=");
  }

  /// The sentence against these changes; none where they are allowed.
  std::optional<std::string> objection(const std::vector<std::string>& changes) const {
    try {
      YamlNode document = document_;
      for (const std::string& change : changes) apply_override(document, change);
      read_document(document, name_);
      return {};
    } catch (const InputError& error) {
      return error.sentence();
    }
  }

 private:
  YamlNode document_;
  std::string name_;
};

FieldChoice choice_of(const Asker& asker, const FieldRow& row, const Scenario& scenario, const std::string& value) {
  FieldChoice choice{.value = value};
  const std::string change = std::string(row.path) + "=" + value;
  const std::optional<std::string> objection = asker.objection({change});
  choice.is_allowed = !objection;
  if (!objection) return choice;
  choice.why_not = *objection;
  if (row.companions == nullptr) return choice;
  for (const std::vector<std::string>& also : row.companions(scenario, value)) {
    std::vector<std::string> changes = also;
    changes.push_back(change);
    const bool is_own =
        std::ranges::any_of(also, [&](const std::string& one) { return one.starts_with(std::string(row.path) + "="); });
    if (is_own || asker.objection(changes)) continue;
    choice.is_allowed = true;
    choice.also = also;
    choice.why_not.clear();
    break;
  }
  return choice;
}

}  // namespace

Form form_of(const ScenarioSource& source) {
  Form form;
  const YamlNode document = source.resolved();
  form.refusals = refusals_of(document, source.name());
  Scenario scenario;
  try {
    scenario = read_unchecked(document, source.name());
  } catch (const InputError&) {
    return form;  // which is among the refusals
  }
  if (form.refusals.empty()) form.warnings = read_document(document, source.name()).warnings;
  form.dp_follows = states_gpus(document);
  form.dp = scenario.parallelism.dp;
  const Asker asker(document, source.name());
  for (const FieldRow& row : form_fields()) {
    FormField field{.path = std::string(row.path), .value = row.value(scenario), .choices = {}};
    for (const std::string& value : row.candidates(scenario)) field.choices.push_back(choice_of(asker, row, scenario, value));
    form.fields.push_back(std::move(field));
  }
  return form;
}

Json to_json_object(const Form& form) {
  Json fields = Json::array(), refusals = Json::array();
  for (const FormField& field : form.fields) {
    Json choices = Json::array();
    for (const FieldChoice& choice : field.choices) {
      Json one = {{"value", choice.value}, {"allowed", choice.is_allowed}};
      if (!choice.is_allowed) one["why_not"] = choice.why_not;
      if (!choice.also.empty()) one["also"] = choice.also;
      choices.push_back(std::move(one));
    }
    fields.push_back({{"path", field.path}, {"value", field.value}, {"choices", std::move(choices)}});
  }
  for (const InputError& error : form.refusals)
    refusals.push_back({{"place", error.place().text()}, {"sentence", error.sentence()}});
  return {{"dp_follows", form.dp_follows},
          {name_of(Axis::dp), form.dp},
          {"fields", std::move(fields)},
          {"refusals", std::move(refusals)},
          {"warnings", form.warnings}};
}

}  // namespace tandem::studies
