#pragma once

#include <string>
#include <vector>

#include "scenarios/reading/yaml_tree.h"

namespace tandem::scenarios {

/// What such a file is expected to be, as messages say it.
inline constexpr const char* a_hf_config = "a config.json of Hugging Face";

/// What a config.json of Hugging Face says of a model.
struct HfModel {
  YamlNode fields;                  ///< of `model` in a scenario, each with its place in the file
  std::vector<std::string> unused;  ///< fields of the file that Tandem has no use for, in the file's order
  std::vector<std::string> notes;   ///< what the model has that is not modelled, with places
};

/// Reads the text of a config.json. Throws InputError for a model that no scenario expresses, with the field that is at fault.
HfModel read_hf_model(const std::string& text, const std::string& file);

}  // namespace tandem::scenarios
