#include "scenarios/reading/hf_model.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "runtime/base/nearest.h"
#include "scenarios/reading/hf_compressed.h"
#include "scenarios/reading/hf_config.h"
#include "scenarios/reading/hf_fields.h"
#include "scenarios/reading/hf_layers.h"
#include "scenarios/reading/json_tree.h"
#include "scenarios/reading/yaml_mapping.h"
#include "scenarios/spec/names.h"

namespace tandem::scenarios {
namespace {

/// A function of the MLP, by the names of transformers (activations.py).
struct HfFunction {
  std::string_view name;
  MlpFunction function;
};
constexpr HfFunction functions[] = {{"silu", MlpFunction::silu},
                                    {"swish", MlpFunction::silu},
                                    {"gelu", MlpFunction::gelu},
                                    {"gelu_new", MlpFunction::gelu},
                                    {"gelu_fast", MlpFunction::gelu},
                                    {"gelu_pytorch_tanh", MlpFunction::gelu},
                                    {"quick-gelu", MlpFunction::quick_gelu},
                                    {"relu2", MlpFunction::squared_relu}};

/// A repository's folder says more than config.json.
std::string name_of_file(const std::string& file, const std::string& model_type) {
  const std::filesystem::path path(file);
  std::string stem = path.stem().string(), folder = path.parent_path().filename().string();
  if (stem != "config") return stem;
  return folder.empty() || folder == "." || folder == ".." ? model_type : folder;
}

class HfModelReader {
 public:
  HfModelReader(const std::string& text, const std::string& file)
      : config_(parse_json(text, file)), model_(make_node(YamlNode::Kind::mapping, {.file = file})) {
    put(model_, "name", name_of_file(file, config_.model_type()), config_.type_place());
  }

  HfModel all() {
    sizes();
    attention();
    positions();
    put_layer_types(config_, model_);
    experts();
    mamba();
    linear_attention();
    lightning_attention();
    if (is_compressed()) put_hyper_connections(config_, model_);
    further_tokens();
    biases();
    what_is_left();
    return {.fields = std::move(model_), .unused = std::move(unused_), .notes = std::move(notes_)};
  }

 private:
  HfConfig config_;
  YamlNode model_;
  std::vector<std::string> unused_, notes_;

  const HfFamily& family() const { return config_.family(); }
  bool is_compressed() const { return family().mixers == HfMixers::compressed; }
  void note(const Place& place, const std::string& sentence) { notes_.push_back(placed(place, sentence)); }

  void needed(const char* key, std::initializer_list<std::string_view> fields) {
    config_.require(fields);
    config_.copy(model_, key, config_.first_of(fields));
  }

  void sizes() {
    needed("layers", {"num_hidden_layers"});
    needed("hidden", {"hidden_size"});
    if (is_compressed() && !config_.has("intermediate_size"))
      needed("ffn", {"moe_intermediate_size"});  // which all layers have
    else
      needed("ffn", {"intermediate_size_mlp", "intermediate_size"});  // Llama 4 has the experts' under the second name
    put(model_, "gated", family().gated, config_.type_place());
    const std::string_view field = config_.first_of({"glu_function", "hidden_activation", "mlp_hidden_act", "hidden_act"});
    if (const MlpFunction function = mlp_function(field); function != (family().gated ? MlpFunction::silu : MlpFunction::gelu))
      put(model_, "activation", name_in(mlp_function_names, function), config_.place(field));
    if (config_.is_set("swiglu_limit")) config_.copy(model_, "activation_limit", "swiglu_limit");
    if (config_.is_set("glu_offset")) config_.copy(model_, "activation_offset", "glu_offset");
    needed("vocab", {"vocab_size"});
    put(model_, "norm", name_in(norm_names, NormKind::rms), config_.type_place());
    norms();
    factors();
    put(model_, "tied_embeddings", config_.boolean("tie_word_embeddings", false), config_.place("tie_word_embeddings"));
  }

  /// `postnorm` of MiniMax-Text-01: the stream goes on from the norm.
  void norms() {
    const bool follows = family().norms == NormPlacement::residual && !config_.boolean("postnorm", true);
    const NormPlacement placement = follows ? NormPlacement::pre : family().norms;
    if (placement != NormPlacement::pre)
      put(model_, "norm_placement", name_in(norm_placement_names, placement), config_.type_place());
    if (family().mixers != HfMixers::listed) return;
    // The names of MiniMaxAI's own files, then those of transformers.
    constexpr const char* factors[][3] = {
        {"full_attention_alpha", "layernorm_full_attention_alpha", "full_attn_alpha_factor"},
        {"full_attention_beta", "layernorm_full_attention_beta", "full_attn_beta_factor"},
        {"linear_attention_alpha", "layernorm_linear_attention_alpha", "linear_attn_alpha_factor"},
        {"linear_attention_beta", "layernorm_linear_attention_beta", "linear_attn_beta_factor"},
        {"mlp_alpha", "layernorm_mlp_alpha", "mlp_alpha_factor"},
        {"mlp_beta", "layernorm_mlp_beta", "mlp_beta_factor"}};
    for (const auto& [key, field, other] : factors)
      if (const std::string_view stated = config_.first_of({field, other}); !stated.empty())
        config_.copy(section_of(model_, "residual", config_.place(stated)), key, stated);
  }

  /// Those of Granite, and what Gemma's code does.
  void factors() {
    if (family().scales_embeddings)
      put(model_, "embedding_factor", std::sqrt(static_cast<double>(config_.integer("hidden_size"))), config_.type_place());
    if (config_.is_set("embedding_multiplier")) config_.copy(model_, "embedding_factor", "embedding_multiplier");
    if (const double divisor = config_.number("logits_scaling", 0); divisor > 0)
      put(model_, "logit_factor", 1 / divisor, config_.place("logits_scaling"));
    if (!config_.is_set("residual_multiplier")) return;
    YamlNode& residual = section_of(model_, "residual", config_.place("residual_multiplier"));
    for (const char* key : {"full_attention_beta", "mlp_beta"}) config_.copy(residual, key, "residual_multiplier");
  }

  MlpFunction mlp_function(std::string_view field) {
    const std::string name = field.empty() ? "silu" : config_.text(field, "");
    const auto* const found = std::ranges::find(functions, name, &HfFunction::name);
    if (found != std::end(functions)) return found->function;
    std::vector<std::string> names;
    for (const HfFunction& known : functions) names.emplace_back(known.name);
    config_.fail(field,
                 std::string(field) + " is " + excerpt(name) + ", which is not lowered; expected one of: " + joined(names));
  }

  void attention() {
    needed("heads", {"num_attention_heads"});
    const bool is_latent = config_.is_set("kv_lora_rank");
    if (is_latent) {
      for (const char* follows : {"num_key_value_heads", "head_dim", "qk_head_dim"}) config_.has(follows);
      latent_attention();
    } else {
      config_.copy(model_, "kv_heads", "num_key_value_heads");
      config_.copy(model_, "head_dim", config_.first_of({"head_dim", "attention_head_dim"}));
    }
    if (is_compressed())
      put_compressed_attention(config_, model_);
    else
      indexer(is_latent);
    norms_of_heads(is_latent);
    if (config_.boolean("attn_output_gate", false)) put(model_, "attention_gate", true, config_.place("attn_output_gate"));
    if (config_.is_set("attention_multiplier")) config_.copy(model_, "attention_scale", "attention_multiplier");
    if (const double scalar = config_.number("query_pre_attn_scalar", 0); scalar > 0 && scalar != config_.number("head_dim", 0))
      put(model_, "attention_scale", 1 / std::sqrt(scalar), config_.place("query_pre_attn_scalar"));
    if (config_.boolean("attention_sinks", false)) put(model_, "attention_sinks", true, config_.type_place());
    if (config_.is_set("attn_logit_softcapping")) config_.copy(model_, "attention_softcap", "attn_logit_softcapping");
    if (config_.is_set("final_logit_softcapping")) config_.copy(model_, "logit_softcap", "final_logit_softcapping");
  }

  void latent_attention() {
    YamlNode& mla = section_of(model_, "mla", config_.place("kv_lora_rank"));
    config_.copy(mla, "q_rank", "q_lora_rank");
    for (const auto& [key, field] : {std::pair{"kv_rank", "kv_lora_rank"}, std::pair{"rope_dim", "qk_rope_head_dim"},
                                     std::pair{"nope_dim", "qk_nope_head_dim"}, std::pair{"v_dim", "v_head_dim"}}) {
      config_.require({field});
      config_.copy(mla, key, field);
    }
  }

  /// The keys that a query attends to are chosen by an indexer in every layer.
  void indexer(bool is_latent) {
    if (!config_.is_set("index_topk")) return;
    if (!is_latent)
      config_.fail("index_topk", "index_topk without kv_lora_rank: an indexer is lowered for latent attention alone");
    const std::vector<std::string> types = config_.texts("indexer_types");
    const bool shares = config_.integer("index_topk_freq", 1) > 1 || config_.is_set("index_topk_pattern") ||
                        std::ranges::any_of(types, [](const std::string& type) { return type != "full"; });
    config_.has("index_skip_topk_offset");
    if (shares)
      config_.fail(config_.first_of({"index_topk_pattern", "indexer_types", "index_topk_freq"}),
                   "layers that attend to the keys which an earlier layer chose are not lowered; expected an indexer in each");
    YamlNode& indexer = section_of(model_, "indexer", config_.place("index_topk"));
    for (const auto& [key, field] :
         {std::pair{"heads", "index_n_heads"}, std::pair{"head_dim", "index_head_dim"}, std::pair{"top_k", "index_topk"}}) {
      config_.require({field});
      config_.copy(indexer, key, field);
    }
  }

  void norms_of_heads(bool is_latent) {
    const bool has = config_.boolean("use_qk_norm", false);
    const std::string kind = config_.text("qk_norm_type", "");
    if (!has || is_latent) return;
    if (family().qk_norm == QkNorm::none)
      return note(config_.place("use_qk_norm"), "use_qk_norm: norms of queries and keys, without weights, are not modelled");
    const QkNorm norm = kind == "per_head" ? QkNorm::head : family().qk_norm;
    put(model_, "qk_norm", name_in(qk_norm_names, norm), config_.place("use_qk_norm"));
  }

  /// The field of `rope_parameters`, under its name, for all layers or for those of one type.
  const YamlNode* rope_parameter(const char* layer_type, const char* field) {
    const YamlNode* parameters = config_.find("rope_parameters");
    if (parameters == nullptr) return nullptr;
    if (const YamlNode* of_type = parameters->find(layer_type)) parameters = of_type;
    return parameters->find(field);
  }

  void copy_rope(const char* key, std::initializer_list<std::string_view> fields, const char* layer_type, const char* parameter) {
    const YamlNode* node = rope_parameter(layer_type, parameter);
    if (node != nullptr && node->kind == YamlNode::Kind::scalar)
      put_stated(model_, key, parameter, *node);
    else if (const std::string_view field = config_.first_of(fields); !field.empty())
      config_.copy(model_, key, field);
  }

  void positions() {
    put(model_, "rotary", family().rotary, config_.type_place());
    if (!family().rotary) {
      for (const char* follows : {"rope_theta", "partial_rotary_factor"}) config_.has(follows);
      return put(model_, "max_positions", std::int64_t{0}, config_.type_place());
    }
    copy_rope("rotary_base", {"rope_theta"}, is_compressed() ? "main" : "full_attention", "rope_theta");
    if (model_.find("rotary_base") == nullptr) put(model_, "rotary_base", std::int64_t{10'000}, config_.type_place());
    copy_rope("sliding_rotary_base", {"rope_local_base_freq"}, "sliding_attention", "rope_theta");
    const YamlNode* sliding = model_.find("sliding_rotary_base");
    if (sliding != nullptr && sliding->text == model_.find("rotary_base")->text) model_.erase("sliding_rotary_base");
    if (is_compressed()) {
      for (const char* follows : {"partial_rotary_factor", "rope_scaling"}) config_.has(follows);
    } else {
      rotated_share();
      stretched_angles();
    }
    if (family().mixers == HfMixers::chunked) put(model_, "rotary_full_attention", false, config_.type_place());
  }

  /// Latent attention has kernels of its own that turn by angles of any kind.
  void stretched_angles() {
    const YamlNode* type = rope_parameter("full_attention", "rope_type");
    for (const char* word : {"rope_type", "type"})
      if (const YamlNode* scaling = config_.find("rope_scaling"); type == nullptr && scaling != nullptr)
        type = scaling->find(word);
    const std::string_view yarn = name_in(rope_scaling_names, RopeScaling::yarn);
    if (type != nullptr && type->text == yarn && !config_.is_set("kv_lora_rank")) put(model_, "rope_scaling", yarn, type->place);
  }

  void rotated_share() {
    const double width = config_.number("rotary_dim", 0), head = config_.number("head_dim", 0);
    copy_rope("rotary_share", {"partial_rotary_factor"}, "full_attention", "partial_rotary_factor");
    if (width > 0 && head > 0 && model_.find("rotary_share") == nullptr)
      put(model_, "rotary_share", width / head, config_.place("rotary_dim"));
    if (const YamlNode* share = model_.find("rotary_share"); share != nullptr && (share->text == "1" || share->text == "1.0"))
      model_.erase("rotary_share");
  }

  void experts() {
    if (family().experts == HfExperts::none) return;
    const std::string_view count = config_.first_of({"num_experts", "num_local_experts", "n_routed_experts"});
    if (count.empty() && family().experts == HfExperts::lettered) return;
    config_.require({"num_experts", "num_local_experts", "n_routed_experts"});
    YamlNode& moe = section_of(model_, "moe", config_.place(count));
    config_.copy(moe, "experts", count);
    config_.require({"num_experts_per_tok", "experts_per_token"});
    config_.copy(moe, "top_k", config_.first_of({"num_experts_per_tok", "experts_per_token"}));
    const std::string_view width = config_.first_of({"moe_intermediate_size", "intermediate_size"});
    config_.copy(moe, "ffn", width);
    config_.copy(moe, "latent", config_.first_of({"moe_latent_size"}));
    shared_experts(moe, config_.integer(width));
    put_expert_layers(config_, moe);
    router(moe);
    if (family().biased_experts)
      for (const char* key : {"linear_bias", "router_bias"}) put(moe, key, true, config_.type_place());
    if (family().gated_shared && moe.find("shared_experts") != nullptr) put(moe, "shared_gate", true, config_.type_place());
    const std::string_view loss = config_.first_of({"router_aux_loss_coef", "aux_loss_alpha"});
    if (!loss.empty()) config_.copy(moe, "balance_loss", loss);
    if (is_compressed()) put_hash_layers(config_, moe);
    if (config_.boolean("seq_aux", false)) put(moe, "balance_scope", "sequence", config_.place("seq_aux"));
  }

  void shared_experts(YamlNode& moe, std::int64_t width) {
    const std::string_view field =
        config_.first_of({"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "shared_intermediate_size"});
    const std::int64_t count = config_.integer("n_shared_experts", 0);
    if (field.empty()) {
      if (count > 0) put(moe, "shared_experts", count, config_.place("n_shared_experts"));
      return;
    }
    const std::int64_t shared = std::max<std::int64_t>(1, count) * config_.integer(field);
    if (width < 1 || shared % width != 0)
      config_.fail(field, std::string(field) + " is " + std::to_string(shared) + ", expected a multiple of the experts' width, " +
                              std::to_string(width));
    if (shared > 0) put(moe, "shared_experts", shared / width, config_.place(field));
    if (const std::string gate = config_.text("shared_moe_mode", ""); shared > 0 && !gate.empty())
      note(config_.place("shared_moe_mode"), "shared_moe_mode: the gate of the shared expert is not modelled");
  }

  void router(YamlNode& moe) {
    const bool several = config_.integer(config_.first_of({"num_experts_per_tok", "experts_per_token"})) > 1;
    const bool normalises = config_.boolean("norm_topk_prob", true);
    const std::string score = config_.text("scoring_func", "softmax"), method = config_.text("topk_method", "greedy");
    const bool is_softmax = score == "softmax";
    const std::int64_t groups = config_.integer("n_group", 1), taken = config_.integer("topk_group", groups);
    if (groups > 1 && taken < groups && method != "greedy") {
      config_.copy(moe, "groups", "n_group");
      config_.copy(moe, "node_limit", "topk_group");
      if (method == "group_limited_greedy") put(moe, "best_of_group", std::int64_t{1}, config_.place("topk_method"));
    }
    if (!is_softmax) put_stated(moe, "score_function", "scoring_func", make_scalar(score, config_.place("scoring_func")));
    if (is_softmax && several && !normalises) put(moe, "pre_softmax", true, config_.place("norm_topk_prob"));
    if (!is_softmax && several && !normalises)
      note(config_.place("norm_topk_prob"), "norm_topk_prob: gates are divided by their sum all the same");
    if (config_.number("routed_scaling_factor", 1) != 1) config_.copy(moe, "scaling_factor", "routed_scaling_factor");
    if (method == "noaux_tc" || config_.boolean("use_routing_bias", false))
      put(moe, "expert_bias", true, config_.place(config_.first_of({"use_routing_bias", "topk_method"})));
  }

  void mamba() {
    if (family().mixers != HfMixers::lettered) return;
    YamlNode& mamba = section_of(model_, "mamba", config_.place("mamba_num_heads"));
    config_.require({"mamba_num_heads"});
    for (const auto& [key, field] :
         {std::pair{"heads", "mamba_num_heads"}, std::pair{"head_dim", "mamba_head_dim"}, std::pair{"groups", "n_groups"},
          std::pair{"state", "ssm_state_size"}, std::pair{"conv", "conv_kernel"}, std::pair{"chunk", "chunk_size"}})
      config_.copy(mamba, key, field);
  }

  void linear_attention() {
    const YamlNode* types = model_.find("layer_types");
    if (family().mixers != HfMixers::gated_delta || types == nullptr) return;
    YamlNode& linear = section_of(model_, "linear_attention", config_.place("linear_num_key_heads"));
    config_.require({"linear_num_key_heads"});
    for (const auto& [key, field] :
         {std::pair{"key_heads", "linear_num_key_heads"}, std::pair{"value_heads", "linear_num_value_heads"},
          std::pair{"key_dim", "linear_key_head_dim"}, std::pair{"value_dim", "linear_value_head_dim"},
          std::pair{"conv", "linear_conv_kernel_dim"}})
      config_.copy(linear, key, field);
  }

  /// Heads are as many as those of attention, and as wide.
  void lightning_attention() {
    const YamlNode* types = model_.find("layer_types");
    if (family().mixers != HfMixers::listed || types == nullptr) return;
    YamlNode& lightning = section_of(model_, "lightning_attention", config_.place("num_attention_heads"));
    config_.copy(lightning, "heads", "num_attention_heads");
    if (config_.has("head_dim"))
      config_.copy(lightning, "head_dim", "head_dim");
    else
      put(lightning, "head_dim", config_.integer("hidden_size") / config_.integer("num_attention_heads"), config_.type_place());
    config_.copy(lightning, "chunk", "block_size");
  }

  void further_tokens() {
    const std::int64_t deepseek = config_.integer("num_nextn_predict_layers", 0);
    const std::int64_t minimax = config_.integer("num_mtp_modules", 0) * config_.integer("mtp_transformer_layers", 1);
    const bool uses = config_.boolean("use_mtp", true);
    const char* const field = deepseek > 0 ? "num_nextn_predict_layers" : "num_mtp_modules";
    if (deepseek + minimax > 0 && uses) put(model_, "mtp_depth", deepseek + minimax, config_.place(field));
  }

  void biases() {
    const bool is_latent = model_.find("mla") != nullptr;
    const bool is_plain = model_.find("moe") == nullptr && !is_latent && model_.find("mamba") == nullptr;
    const bool of_inputs = config_.boolean("qkv_bias", false), of_attention = config_.boolean("attention_bias", false);
    const bool of_mlp = config_.boolean("mlp_bias", false);
    const Place place = config_.place(of_attention ? "attention_bias" : "qkv_bias");
    if (of_attention && of_mlp && is_plain) return put(model_, "linear_bias", true, place);
    if ((of_attention || of_inputs) && is_latent)
      note(place, "biases of attention are not modelled with latent attention");
    else if (of_attention || of_inputs)
      put(model_, "attention_bias", name_in(attention_bias_names, of_attention ? family().biases : AttentionBias::qkv), place);
    if (of_mlp) note(config_.place("mlp_bias"), "biases of the MLP are not modelled");
  }

  void what_is_left() {
    for (const HfNotModelled& known : hf_not_modelled())
      if (config_.is_set(known.field))
        note(config_.place(known.field), std::string(known.field) + ": " + std::string(known.sentence));
    if (!family().not_modelled.empty())
      note(config_.type_place(), config_.model_type() + " has what is not modelled: " + std::string(family().not_modelled));
    for (const std::string& field : config_.unasked())
      if (!changes_no_step(field)) unused_.push_back(field);
  }
};

}  // namespace

HfModel read_hf_model(const std::string& text, const std::string& file) { return HfModelReader(text, file).all(); }

}  // namespace tandem::scenarios
