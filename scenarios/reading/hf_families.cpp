#include "scenarios/reading/hf_families.h"

#include <algorithm>

namespace tandem::scenarios {
namespace {

constexpr HfFamily families[] = {
    {.type = "llama"},
    {.type = "llama4", .mixers = HfMixers::chunked, .experts = HfExperts::interleaved, .qk_norm = QkNorm::unit},
    {.type = "mistral"},
    {.type = "mixtral", .experts = HfExperts::all},
    {.type = "qwen2", .mixers = HfMixers::upper_slide, .biases = AttentionBias::qkv},
    {.type = "qwen2_moe",
     .mixers = HfMixers::upper_slide,
     .experts = HfExperts::stepped,
     .biases = AttentionBias::qkv,
     .gated_shared = true},
    {.type = "qwen3", .mixers = HfMixers::upper_slide, .qk_norm = QkNorm::head},
    {.type = "qwen3_moe", .mixers = HfMixers::upper_slide, .experts = HfExperts::stepped, .qk_norm = QkNorm::head},
    {.type = "qwen3_next",
     .mixers = HfMixers::gated_delta,
     .experts = HfExperts::stepped,
     .qk_norm = QkNorm::head,
     .gated_shared = true},
    {.type = "qwen3_5_moe",
     .mixers = HfMixers::gated_delta,
     .experts = HfExperts::stepped,
     .qk_norm = QkNorm::head,
     .gated_shared = true},
    {.type = "deepseek_v2", .experts = HfExperts::after_first},
    {.type = "deepseek_v3", .experts = HfExperts::after_first},
    {.type = "deepseek_v32", .experts = HfExperts::after_first},
    {.type = "deepseek_v4", .mixers = HfMixers::compressed, .experts = HfExperts::all},
    {.type = "glm_moe_dsa", .experts = HfExperts::after_first},
    {.type = "gpt_oss", .mixers = HfMixers::pattern, .experts = HfExperts::all, .biased_experts = true},
    {.type = "glm4_moe", .experts = HfExperts::after_first, .qk_norm = QkNorm::head, .biases = AttentionBias::qkv},
    {.type = "gemma", .scales_embeddings = true},
    {.type = "gemma2", .mixers = HfMixers::pattern, .norms = NormPlacement::both, .scales_embeddings = true},
    {.type = "gemma3",
     .mixers = HfMixers::pattern,
     .norms = NormPlacement::both,
     .qk_norm = QkNorm::head,
     .scales_embeddings = true},
    {.type = "nemotron_h", .mixers = HfMixers::lettered, .experts = HfExperts::lettered, .gated = false, .rotary = false},
    {.type = "olmo2", .norms = NormPlacement::post, .qk_norm = QkNorm::all},
    {.type = "olmo3", .mixers = HfMixers::pattern, .norms = NormPlacement::post, .qk_norm = QkNorm::all},
    {.type = "phi3"},
    {.type = "granite"},
    {.type = "granitemoe", .experts = HfExperts::all},
    {.type = "minimax", .mixers = HfMixers::listed, .experts = HfExperts::all, .norms = NormPlacement::residual},
    {.type = "minimax_m2", .experts = HfExperts::all, .qk_norm = QkNorm::all},
};

/// Another name of a family: the language model inside one with an encoder, or the same architecture.
struct OtherName {
  std::string_view type, family;
};
constexpr OtherName other_names[] = {
    {"llama4_text", "llama4"},           {"gemma3_text", "gemma3"},      {"kimi_k2", "deepseek_v3"},
    {"qwen2_5_vl_text", "qwen2"},        {"qwen3_vl_text", "qwen3"},     {"qwen3_vl_moe_text", "qwen3_moe"},
    {"qwen3_5_moe_text", "qwen3_5_moe"}, {"minimax_text_01", "minimax"}, {"minimax_m1", "minimax"},
    {"MiniMaxText01", "minimax"},        {"MiniMaxM1", "minimax"},
};

constexpr HfDefault defaults[] = {
    {"llama4", "attention_chunk_size", "8192"},
    {"llama4", "interleave_moe_layer_step", "1"},
    {"llama4", "no_rope_layer_interval", "4"},
    {"llama4", "intermediate_size_mlp", "16384"},
    {"llama4", "rope_theta", "500000"},
    {"llama4", "use_qk_norm", "true"},
    {"llama4", "n_shared_experts", "1"},    // Llama4TextMoe.shared_expert
    {"llama4", "scoring_func", "sigmoid"},  // Llama4Router
    {"mixtral", "rope_theta", "1000000"},
    {"mixtral", "num_key_value_heads", "8"},
    {"mistral", "num_key_value_heads", "8"},
    {"qwen2", "attention_bias", "true"},  // Qwen2Attention's q_proj, k_proj, v_proj
    {"qwen2", "use_sliding_window", "false"},
    {"qwen2_moe", "attention_bias", "true"},  // Qwen2MoeAttention's
    {"qwen2_moe", "use_sliding_window", "false"},
    {"qwen2_moe", "norm_topk_prob", "false"},
    {"qwen3", "use_sliding_window", "false"},
    {"qwen3", "use_qk_norm", "true"},
    {"qwen3", "head_dim", "128"},
    {"qwen3_moe", "use_sliding_window", "false"},
    {"qwen3_moe", "use_qk_norm", "true"},
    {"qwen3_moe", "norm_topk_prob", "false"},
    {"qwen3_next", "use_qk_norm", "true"},
    {"qwen3_next", "attn_output_gate", "true"},  // Qwen3NextAttention
    {"qwen3_next", "full_attention_interval", "4"},
    {"qwen3_next", "partial_rotary_factor", "0.25"},
    {"qwen3_next", "head_dim", "256"},
    {"qwen3_5_moe", "use_qk_norm", "true"},
    {"qwen3_5_moe", "attn_output_gate", "true"},
    {"qwen3_5_moe", "full_attention_interval", "4"},
    {"qwen3_5_moe", "partial_rotary_factor", "0.25"},
    {"qwen3_5_moe", "head_dim", "256"},
    {"deepseek_v2", "norm_topk_prob", "false"},
    {"deepseek_v2", "routed_scaling_factor", "1"},
    {"deepseek_v3", "scoring_func", "sigmoid"},  // DeepseekV3TopkRouter
    {"deepseek_v3", "topk_method", "noaux_tc"},  // its e_score_correction_bias
    {"deepseek_v32", "scoring_func", "sigmoid"},
    {"deepseek_v32", "topk_method", "noaux_tc"},
    {"deepseek_v32", "index_topk", "2048"},
    {"deepseek_v32", "index_n_heads", "64"},
    {"deepseek_v32", "index_head_dim", "128"},
    {"deepseek_v4", "attention_sinks", "true"},  // attn_sink of DeepSeek's Attention
    {"deepseek_v4", "scoring_func", "sqrtsoftplus"},
    {"deepseek_v4", "topk_method", "noaux_tc"},
    {"deepseek_v4", "num_key_value_heads", "1"},
    {"deepseek_v4", "num_hash_layers", "3"},
    {"deepseek_v4", "num_nextn_predict_layers", "1"},
    {"deepseek_v4", "compress_rope_theta", "160000"},
    {"deepseek_v4", "hc_mult", "4"},
    {"deepseek_v4", "hc_sinkhorn_iters", "20"},
    {"deepseek_v4", "swiglu_limit", "10"},
    {"deepseek_v4", "sliding_window", "128"},
    {"glm_moe_dsa", "scoring_func", "sigmoid"},
    {"glm_moe_dsa", "topk_method", "noaux_tc"},
    {"glm_moe_dsa", "first_k_dense_replace", "3"},
    {"glm_moe_dsa", "index_topk", "2048"},
    {"glm_moe_dsa", "index_n_heads", "32"},
    {"glm_moe_dsa", "index_head_dim", "128"},
    {"gpt_oss", "sliding_window_pattern", "2"},
    {"gpt_oss", "rope_theta", "150000"},
    {"gpt_oss", "swiglu_limit", "7"},  // GptOssExperts, as are the next two
    {"gpt_oss", "glu_function", "quick-gelu"},
    {"gpt_oss", "glu_offset", "1"},
    {"gpt_oss", "head_dim", "64"},
    {"gpt_oss", "attention_bias", "true"},
    {"gpt_oss", "attention_sinks", "true"},   // GptOssAttention.sinks
    {"glm4_moe", "scoring_func", "sigmoid"},  // Glm4MoeTopkRouter
    {"glm4_moe", "topk_method", "noaux_tc"},
    {"glm4_moe", "use_qk_norm", "false"},
    {"glm4_moe", "partial_rotary_factor", "0.5"},
    {"gemma", "tie_word_embeddings", "true"},
    {"gemma", "head_dim", "256"},
    {"gemma", "hidden_act", "gelu_pytorch_tanh"},
    {"gemma2", "tie_word_embeddings", "true"},
    {"gemma2", "head_dim", "256"},
    {"gemma2", "hidden_activation", "gelu_pytorch_tanh"},
    {"gemma2", "sliding_window_pattern", "2"},
    {"gemma2", "query_pre_attn_scalar", "256"},
    {"gemma2", "sliding_window", "4096"},
    {"gemma2", "attn_logit_softcapping", "50"},
    {"gemma2", "final_logit_softcapping", "30"},
    {"gemma3", "tie_word_embeddings", "true"},
    {"gemma3", "vocab_size", "262208"},
    {"gemma3", "num_attention_heads", "8"},
    {"gemma3", "num_key_value_heads", "4"},
    {"gemma3", "head_dim", "256"},
    {"gemma3", "hidden_activation", "gelu_pytorch_tanh"},
    {"gemma3", "sliding_window_pattern", "6"},
    {"gemma3", "query_pre_attn_scalar", "256"},
    {"gemma3", "sliding_window", "4096"},
    {"gemma3", "rope_theta", "1000000"},
    {"gemma3", "rope_local_base_freq", "10000"},
    {"gemma3", "use_qk_norm", "true"},
    {"nemotron_h", "scoring_func", "sigmoid"},  // NemotronHTopkRouter
    {"nemotron_h", "topk_method", "noaux_tc"},
    {"olmo2", "use_qk_norm", "true"},
    {"olmo3", "use_qk_norm", "true"},
    {"olmo3", "sliding_window_pattern", "4"},
    {"olmo3", "sliding_window", "4096"},
    {"minimax", "postnorm", "true"},  // MiniMaxDecoderLayer
    {"minimax", "num_key_value_heads", "8"},
    {"minimax", "rope_theta", "1000000"},
    {"minimax_m2", "use_qk_norm", "true"},
    {"minimax_m2", "scoring_func", "sigmoid"},
};

}  // namespace

const HfFamily* find_hf_family(std::string_view model_type) {
  const auto* const other = std::ranges::find(other_names, model_type, &OtherName::type);
  if (other != std::end(other_names)) model_type = other->family;
  const auto* const found = std::ranges::find(families, model_type, &HfFamily::type);
  return found == std::end(families) ? nullptr : found;
}

std::vector<std::string> hf_model_types() {
  std::vector<std::string> names;
  for (const HfFamily& family : families) names.emplace_back(family.type);
  for (const OtherName& other : other_names) names.emplace_back(other.type);
  return names;
}

std::span<const HfDefault> hf_defaults() { return defaults; }

}  // namespace tandem::scenarios
