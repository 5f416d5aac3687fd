#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "studies/runner/scenario_source.h"

namespace tandem::studies {

/// A value that a field could have.
struct FieldChoice {
  std::string value;  ///< as it stands in a scenario
  bool is_allowed = false;
  std::string why_not = {};            ///< the sentence of the rule that refuses it
  std::vector<std::string> also = {};  ///< changes of other fields without which it would be refused
};

/// A field of the form: what it is, and what it could be as long as all others stay.
struct FormField {
  std::string path;   ///< "parallelism.tp"
  std::string value;  ///< as it stands in a scenario
  std::vector<FieldChoice> choices;
};

/// What a page shows of a scenario beside its step.
struct Form {
  bool dp_follows = false;  ///< from the GPUs, which the scenario states, and the other axes
  std::int64_t dp = 0;
  std::vector<FormField> fields;      ///< empty where a field cannot be read
  std::vector<InputError> refusals;   ///< why the scenario has no step; empty where it has
  std::vector<std::string> warnings;  ///< of a scenario that has
};

/// Asks the scenario's own rules (scenarios/checks) about each value that a field could have. The size of data parallelism
/// follows from the others where the scenario says how many GPUs there are. Throws InputError only for what is no scenario at
/// all.
Form form_of(const ScenarioSource& source);

nlohmann::ordered_json to_json_object(const Form& form);

}  // namespace tandem::studies
