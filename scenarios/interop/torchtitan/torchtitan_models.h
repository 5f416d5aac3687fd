#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// A model that TorchTitan has (torchtitan/models/*/__init__.py, 0.2 and 0.3), and what is the same in a scenario.
struct TorchTitanModel {
  std::string_view model;  ///< a preset, or the fields of a model in braces
  std::string_view name;
  std::string_view flavor;

  bool is_preset() const { return !model.starts_with('{'); }
};

const std::vector<TorchTitanModel>& torchtitan_models();
/// Whether TorchTitan has flavors of that name here.
bool is_torchtitan_model(std::string_view name);

/// Returns the model of a flavor; what follows an underscore in it names an implementation of attention ("8B_flex").
const TorchTitanModel* torchtitan_model(std::string_view name, std::string_view flavor);

/// Returns the model with just this shape, where TorchTitan has one.
std::optional<TorchTitanModel> torchtitan_model_of(const ModelSpec& model);

}  // namespace tandem::scenarios
