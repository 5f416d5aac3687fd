#include "scenarios/reading/hf_compressed.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/reading/yaml_mapping.h"

namespace tandem::scenarios {
namespace {

/// A field of a mapping in the file, or null.
const YamlNode* field_of(HfConfig& config, const char* mapping, const char* field) {
  const YamlNode* node = config.find(mapping);
  return node == nullptr ? nullptr : node->find(field);
}

void copy_if_there(YamlNode& to, const char* key, const char* field, const YamlNode* node) {
  if (node != nullptr && node->kind == YamlNode::Kind::scalar) put_stated(to, key, field, *node);
}

/// `compress_rates` by kinds of layers, or the ratio of those in `compress_ratios` that have no indexer.
void put_ratios(HfConfig& config, YamlNode& compressed) {
  for (const auto& [key, kind] :
       {std::pair{"sparse_ratio", "compressed_sparse_attention"}, std::pair{"heavy_ratio", "heavily_compressed_attention"}})
    copy_if_there(compressed, key, "compress_rates", field_of(config, "compress_rates", kind));
  const std::vector<std::int64_t> ratios = config.integers("compress_ratios");
  const auto is_heavy = [](std::int64_t ratio) { return ratio != 0 && ratio != 4; };
  const auto first = std::ranges::find_if(ratios, is_heavy);
  if (first == ratios.end()) return;
  if (std::ranges::any_of(ratios, [&](std::int64_t ratio) { return is_heavy(ratio) && ratio != *first; }))
    config.fail("compress_ratios", "compress_ratios has more than one number beside 0 and 4, which no scenario expresses");
  put(compressed, "heavy_ratio", *first, config.place("compress_ratios"));
}

/// Of the width of a head, as transformers says it.
void put_rotated_part(HfConfig& config, YamlNode& compressed) {
  if (config.has("qk_rope_head_dim")) return config.copy(compressed, "rope_dim", "qk_rope_head_dim");
  config.require({"partial_rotary_factor"});
  const double share = config.number("partial_rotary_factor", 1);
  put(compressed, "rope_dim", static_cast<std::int64_t>(share * static_cast<double>(config.integer("head_dim"))),
      config.place("partial_rotary_factor"));
}

/// In `rope_scaling`, or in `rope_parameters` for the layers with compressed keys.
void put_angles(HfConfig& config, YamlNode& compressed) {
  const YamlNode* angles = field_of(config, "rope_parameters", "compress");
  config.has("compress_rope_theta");
  if (const YamlNode* base = angles == nullptr ? nullptr : angles->find("rope_theta"))
    put_stated(compressed, "rotary_base", "rope_theta", *base);
  else
    config.copy(compressed, "rotary_base", "compress_rope_theta");
  if (angles == nullptr) angles = config.find("rope_scaling");
  const auto text_of = [&](const char* field) {
    const YamlNode* node = angles == nullptr ? nullptr : angles->find(field);
    return node == nullptr ? std::string() : node->text;
  };
  if (text_of("type") != "yarn" && text_of("rope_type") != "yarn") return;
  YamlNode& yarn = section_of(compressed, "yarn", angles->place);
  for (const auto& [key, field] :
       {std::pair{"factor", "factor"}, std::pair{"original_positions", "original_max_position_embeddings"},
        std::pair{"beta_fast", "beta_fast"}, std::pair{"beta_slow", "beta_slow"}})
    copy_if_there(yarn, key, field, angles->find(field));
}

}  // namespace

void put_compressed_attention(HfConfig& config, YamlNode& model) {
  config.require({"q_lora_rank"});
  YamlNode& compressed = section_of(model, "compressed_attention", config.place("q_lora_rank"));
  for (const auto& [key, field] : {std::pair{"q_rank", "q_lora_rank"}, std::pair{"output_groups", "o_groups"},
                                   std::pair{"output_rank", "o_lora_rank"}, std::pair{"index_heads", "index_n_heads"},
                                   std::pair{"index_head_dim", "index_head_dim"}, std::pair{"index_top_k", "index_topk"}}) {
    config.require({field});
    config.copy(compressed, key, field);
  }
  put_rotated_part(config, compressed);
  put_ratios(config, compressed);
  put_angles(config, compressed);
}

void put_hyper_connections(HfConfig& config, YamlNode& model) {
  YamlNode& hyper = section_of(model, "hyper_connections", config.place("hc_mult"));
  config.copy(hyper, "streams", "hc_mult");
  config.copy(hyper, "iterations", "hc_sinkhorn_iters");
}

void put_hash_layers(HfConfig& config, YamlNode& moe) {
  const std::string field = "mlp_layer_types";
  const std::vector<std::string> types = config.texts(field);
  if (types.empty()) return config.copy(moe, "hash_layers", "num_hash_layers");
  config.has("num_hash_layers");
  const auto is_hashed = [](const std::string& type) { return type == "hash_moe"; };
  const auto first = std::ranges::find_if_not(types, is_hashed);
  if (std::any_of(first, types.end(), is_hashed))
    config.fail(field, field + " has hash_moe behind other layers, expected it of the first layers alone");
  if (first != types.begin()) put(moe, "hash_layers", static_cast<std::int64_t>(first - types.begin()), config.place(field));
}

}  // namespace tandem::scenarios
