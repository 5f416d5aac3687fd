#pragma once

#include "scenarios/reading/hf_config.h"

namespace tandem::scenarios {

/// Puts into `model` what its layers are: `layer_types`, as short as a list that repeats can be, and the width of what they see.
/// Throws InputError for kinds of layers that are not lowered.
void put_layer_types(HfConfig& config, YamlNode& model);

/// Puts into `moe` which layers have experts. Throws InputError where no `first_dense_layers` and `every` say it.
void put_expert_layers(HfConfig& config, YamlNode& moe);

}  // namespace tandem::scenarios
