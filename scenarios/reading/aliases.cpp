#include "scenarios/reading/aliases.h"

#include <algorithm>
#include <utility>

#include "runtime/base/nearest.h"
#include "scenarios/reading/reader.h"

namespace tandem::scenarios {
namespace {

struct Alias {
  std::string_view section;
  std::string_view name;
  std::string_view key;
  std::string_view inside = {};  ///< mapping of the section that holds our field, whereas theirs may stand beside it
};

constexpr Alias aliases[] = {
    // Megatron-LM's arguments
    {"model", "num_layers", "layers"},
    {"model", "hidden_size", "hidden"},
    {"model", "num_attention_heads", "heads"},
    {"model", "num_query_groups", "kv_heads"},
    {"model", "kv_channels", "head_dim"},
    {"model", "ffn_hidden_size", "ffn"},
    {"model", "padded_vocab_size", "vocab"},
    {"model", "max_position_embeddings", "max_positions"},
    {"parallelism", "tensor_model_parallel_size", name_of(Axis::tp)},
    {"parallelism", "sequence_parallel", "sp"},
    {"parallelism", "pipeline_model_parallel_size", name_of(Axis::pp)},
    // Megatron-Core's name; like ours it counts the chunks per stage, not the layers per chunk
    {"parallelism", "virtual_pipeline_model_parallel_size", "vpp"},
    {"parallelism", "context_parallel_size", name_of(Axis::cp)},
    {"parallelism", "expert_model_parallel_size", name_of(Axis::ep)},
    {"parallelism", "expert_tensor_parallel_size", "etp"},
    {"parallelism", "moe_token_dispatcher_type", "dispatcher"},
    {"parallelism", "data_parallel_size", name_of(Axis::dp)},
    {"parallelism", "account_for_embedding_in_pipeline_split", "account_for_embedding"},
    {"parallelism", "account_for_loss_in_pipeline_split", "account_for_loss"},
    {"parallelism", "decoder_first_pipeline_num_layers", "first_stage_layers"},
    {"parallelism", "decoder_last_pipeline_num_layers", "last_stage_layers"},
    {"parallelism", "pipeline_model_parallel_layout", "pipeline_layout"},
    {"parallelism", "scatter_gather_tensors_in_pipeline", "scatter_gather"},
    {"training", "seq_length", "sequence"},
    {"training", "micro_batch_size", "micro_batch"},
    {"training", "global_batch_size", "global_batch"},
    {"training", "fp8_recipe", "recipe"},  // what it was called before there was fp4
    {"training", "fp4_recipe", "recipe"},
    {"training", "fp8_dot_product_attention", "fp8_attention"},
    {"training", "fp8_dpa", "fp8_attention"},  // Transformer Engine's
    {"model", "num_experts", "experts", "moe"},
    {"model", "num_moe_experts", "experts", "moe"},
    {"model", "moe_router_topk", "top_k", "moe"},
    {"model", "moe_ffn_hidden_size", "ffn", "moe"},
    {"model", "moe_latent_size", "latent", "moe"},
    {"model", "moe_expert_capacity_factor", "capacity_factor", "moe"},
    {"model", "moe_layer_freq", "every", "moe"},  // as a number; a list of layers has no counterpart
    {"model", "moe_aux_loss_coeff", "balance_loss", "moe"},
    {"model", "moe_router_score_function", "score_function", "moe"},
    {"model", "moe_router_pre_softmax", "pre_softmax", "moe"},
    {"model", "moe_router_topk_scaling_factor", "scaling_factor", "moe"},
    {"model", "moe_router_enable_expert_bias", "expert_bias", "moe"},
    {"model", "moe_router_bias_update_rate", "bias_update_rate", "moe"},
    {"model", "moe_router_num_groups", "groups", "moe"},
    {"model", "moe_router_group_topk", "node_limit", "moe"},
    {"model", "mamba_state_dim", "state", "mamba"},
    {"model", "mamba_num_groups", "groups", "mamba"},
    // Hugging Face
    {"model", "num_hidden_layers", "layers"},
    {"model", "num_key_value_heads", "kv_heads"},
    {"model", "intermediate_size", "ffn"},
    {"model", "vocab_size", "vocab"},
    {"model", "tie_word_embeddings", "tied_embeddings"},
    {"model", "rope_local_base_freq", "sliding_rotary_base"},
    {"model", "partial_rotary_factor", "rotary_share"},
    {"model", "attn_logit_softcapping", "attention_softcap"},
    {"model", "rope_theta", "rotary_base"},
    {"model", "sliding_window", "window"},
    {"model", "hybrid_override_pattern", "layer_types"},
    {"model", "num_local_experts", "experts", "moe"},
    {"model", "n_routed_experts", "experts", "moe"},
    {"model", "num_experts_per_tok", "top_k", "moe"},
    {"model", "moe_intermediate_size", "ffn", "moe"},
    {"model", "n_shared_experts", "shared_experts", "moe"},
    {"model", "first_k_dense_replace", "first_dense_layers", "moe"},
    {"model", "router_aux_loss_coef", "balance_loss", "moe"},
    {"model", "scoring_func", "score_function", "moe"},
    {"model", "routed_scaling_factor", "scaling_factor", "moe"},
    {"model", "n_group", "groups", "moe"},
    {"model", "topk_group", "node_limit", "moe"},
    {"model", "linear_num_key_heads", "key_heads", "linear_attention"},
    {"model", "linear_num_value_heads", "value_heads", "linear_attention"},
    {"model", "linear_key_head_dim", "key_dim", "linear_attention"},
    {"model", "linear_value_head_dim", "value_dim", "linear_attention"},
    {"model", "linear_conv_kernel_dim", "conv", "linear_attention"},
    {"model", "mamba_num_heads", "heads", "mamba"},
    {"model", "mamba_head_dim", "head_dim", "mamba"},
    {"model", "n_groups", "groups", "mamba"},
    {"model", "ssm_state_size", "state", "mamba"},
    {"model", "conv_kernel", "conv", "mamba"},
    {"model", "chunk_size", "chunk", "mamba"},
};

void rename(YamlNode& section, const Alias& alias) {
  for (YamlNode::Entry& entry : section.entries) {
    if (entry.key != alias.name) continue;
    if (section.find(alias.key) != nullptr)
      throw InputError(entry.place, excerpt(alias.name) + " and " + excerpt(alias.key) + " are the same field, expected one");
    entry.key = alias.key;
  }
}

/// Moves what stands in the section into the mapping where it belongs.
void move_inside(YamlNode& section, const Alias& alias) {
  const auto entry = std::ranges::find(section.entries, alias.name, &YamlNode::Entry::key);
  if (entry == section.entries.end()) return;
  YamlNode::Entry moved = std::move(*entry);
  section.entries.erase(entry);
  const std::string key(alias.inside);
  if (section.find(key) == nullptr) section.entries.push_back({key, key, moved.place, {}});
  YamlNode& inside = *section.find(key);
  if (inside.kind == YamlNode::Kind::null) inside = make_node(YamlNode::Kind::mapping, moved.place);
  if (inside.kind != YamlNode::Kind::mapping)
    throw InputError(inside.place, std::string(alias.section) + "." + key + " is " + describe(inside) + ", expected a mapping");
  inside.entries.push_back(std::move(moved));
}

}  // namespace

void rename_aliases(YamlNode& scenario) {
  for (const Alias& alias : aliases) {
    YamlNode* section = scenario.find(alias.section);
    if (section != nullptr && !alias.inside.empty()) {
      move_inside(*section, alias);
      section = section->find(alias.inside);
    }
    if (section != nullptr) rename(*section, alias);
  }
}

std::vector<std::string> aliases_of(std::string_view section) {
  std::vector<std::string> names;
  for (const Alias& alias : aliases) {
    const std::string inside = std::string(alias.section) + "." + std::string(alias.inside);
    if (alias.section == section || inside == section) names.emplace_back(alias.name);
  }
  return names;
}

}  // namespace tandem::scenarios
