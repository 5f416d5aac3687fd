#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// A model that TorchTitan 0.2 has, and the preset that is the same (torchtitan/models/*/__init__.py).
struct TorchTitanModel {
  std::string_view preset;
  std::string_view name;
  std::string_view flavor;
};

const std::vector<TorchTitanModel>& torchtitan_models();

/// Returns the model with just this shape, where TorchTitan has one.
std::optional<TorchTitanModel> torchtitan_model_of(const ModelSpec& model);

}  // namespace tandem::scenarios
