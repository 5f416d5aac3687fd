#pragma once

#include "scenarios/reading/hf_config.h"

namespace tandem::scenarios {

// What config.json says of DeepSeek-V4 alone, as DeepSeek published it, or as transformers (DeepseekV4Config,
// models/deepseek_v4/configuration_deepseek_v4.py) writes it.

/// Throws InputError for layers whose keys stand for different numbers of positions.
void put_compressed_attention(HfConfig& config, YamlNode& model);
void put_hyper_connections(HfConfig& config, YamlNode& model);
/// The first layers, whose experts a token's number chooses. Throws InputError where others are among them.
void put_hash_layers(HfConfig& config, YamlNode& moe);

}  // namespace tandem::scenarios
