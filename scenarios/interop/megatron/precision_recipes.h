#pragma once

#include "scenarios/reading/yaml_tree.h"

namespace tandem::scenarios {

/// Returns the fields of Megatron-Bridge's MixedPrecisionConfig that a recipe's name stands for, "bf16_with_mxfp8_mixed" or
/// "bf16-mixed", all at the name's place (bridge/training/mixed_precision.py). Throws InputError for another name.
YamlNode precision_recipe(const YamlNode& name);

}  // namespace tandem::scenarios
