#pragma once

#include <string>
#include <vector>

#include "scenarios/reading/yaml_tree.h"

namespace tandem::scenarios {

/// Holds a model against the weights that lie beside its config.json: the total size in model.safetensors.index.json (or in
/// pytorch_model.bin.index.json), or the size of the tensors in model.safetensors, against its parameters times the bytes of the
/// type that the config names. Returns what to say where they differ by more than 1 %; nothing where they do not, or where no
/// such file is there, or where the weights are quantized to types of which a weight has no whole number of bytes.
std::vector<std::string> differences_from_weights(const YamlNode& config, const YamlNode& model, const std::string& config_file);

}  // namespace tandem::scenarios
