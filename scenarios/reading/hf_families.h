#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// Which layers attend otherwise, where a config.json has no `layer_types`.
enum class HfMixers : std::uint8_t {
  alike,        ///< all in full, or all in the `sliding_window` where there is one
  upper_slide,  ///< with `use_sliding_window` those from `max_window_layers` on
  pattern,      ///< every `sliding_window_pattern`-th in full, those before it in the window
  chunked,      ///< every `no_rope_layer_interval`-th in full, those before it in chunks; or as `no_rope_layers` says
  gated_delta,  ///< every `full_attention_interval`-th in full, those before it by a gated delta net
  lettered,     ///< a letter for each layer, which is one half: `hybrid_override_pattern`
  listed,       ///< a number for each layer, 0 for lightning attention: `attn_type_list`; else every second one
  compressed    ///< positions of a compressed key of each layer, 0 for none: `compress_ratios`
};

/// Which layers have experts.
enum class HfExperts : std::uint8_t {
  none,
  all,
  after_first,  ///< from `first_k_dense_replace` on, those whose number `moe_layer_freq` divides
  stepped,      ///< the last of every `decoder_sparse_step` layers, but those of `mlp_only_layers`
  interleaved,  ///< the last of every `interleave_moe_layer_step` layers, or those of `moe_layers`
  lettered      ///< as the letters of the layers say
};

/// What a model_type of config.json means that no field says: the model's code in transformers (models/<type>/modeling_*.py)
/// knows it.
struct HfFamily {
  std::string_view type;
  HfMixers mixers = HfMixers::alike;
  HfExperts experts = HfExperts::none;
  NormPlacement norms = NormPlacement::pre;
  QkNorm qk_norm = QkNorm::none;  ///< where `use_qk_norm` is set, or its default
  bool gated = true;
  bool rotary = true;
  AttentionBias biases = AttentionBias::all;  ///< where `attention_bias` is set, or its default
  bool biased_experts = false;                ///< and a biased router
  bool gated_shared = false;                  ///< the sigmoid of a projection weights what the shared expert makes
  bool scales_embeddings = false;             ///< by the root of the model's width
  std::string_view not_modelled = {};         ///< what it has beside, one clause
};

/// Null where there is none of that name.
const HfFamily* find_hf_family(std::string_view model_type);
std::vector<std::string> hf_model_types();

/// The value of a field that a config.json leaves out, as the classes of transformers have it (models/<type>/configuration_*.py).
/// Some are of fields that the class lacks, as its code does but this.
struct HfDefault {
  std::string_view type;  ///< the family's
  std::string_view field;
  std::string_view value;
};
std::span<const HfDefault> hf_defaults();

}  // namespace tandem::scenarios
