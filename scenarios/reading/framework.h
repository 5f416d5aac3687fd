#pragma once

#include "scenarios/reading/yaml_tree.h"

namespace tandem::scenarios {

// What a framework's preset says of the scenario itself. Its fields: those that `read_software` reads, and
//   defaults   fields of the scenario, as this framework sets them unless told otherwise
//   compiled   fields that replace the others where `training.compiled` is true (torch.compile)
//   fp16       the same where `training.precision` is fp16
//   expert_biases   the same where the model's experts have biases, unless one CUDA graph holds the whole step
//   yarn       the same where YaRN stretches the model's rotary angles
//   fp8, fp4   the same where it is one of these, by `training.recipe`
//   runs       what it does where a measured run does not say (run_defaults.h): no field of a scenario

/// Lays the framework's `compiled` over its other fields where the scenario asks for it, and adds its `defaults` to the scenario.
/// The framework's preset must be filled in. Throws InputError where a framework is compiled that does not say what that is.
void apply_framework(YamlNode& scenario);

}  // namespace tandem::scenarios
