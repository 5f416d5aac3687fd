#include "scenarios/aliases.h"

#include "scenarios/nearest.h"

namespace tandem {
namespace {

struct Alias {
  std::string_view section;
  std::string_view name;
  std::string_view key;
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
    {"parallelism", "tensor_model_parallel_size", "tp"},
    {"parallelism", "sequence_parallel", "sp"},
    {"parallelism", "pipeline_model_parallel_size", "pp"},
    // Megatron-Core's name; like ours it counts the chunks per stage, not the layers per chunk
    {"parallelism", "virtual_pipeline_model_parallel_size", "vpp"},
    {"parallelism", "context_parallel_size", "cp"},
    {"parallelism", "expert_model_parallel_size", "ep"},
    {"parallelism", "expert_tensor_parallel_size", "etp"},
    {"parallelism", "data_parallel_size", "dp"},
    {"parallelism", "account_for_embedding_in_pipeline_split", "account_for_embedding"},
    {"parallelism", "account_for_loss_in_pipeline_split", "account_for_loss"},
    {"parallelism", "decoder_first_pipeline_num_layers", "first_stage_layers"},
    {"parallelism", "decoder_last_pipeline_num_layers", "last_stage_layers"},
    {"training", "seq_length", "sequence"},
    {"training", "micro_batch_size", "micro_batch"},
    {"training", "global_batch_size", "global_batch"},
    // Hugging Face
    {"model", "num_hidden_layers", "layers"},
    {"model", "num_key_value_heads", "kv_heads"},
    {"model", "intermediate_size", "ffn"},
    {"model", "vocab_size", "vocab"},
    {"model", "tie_word_embeddings", "tied_embeddings"},
    {"model", "rope_theta", "rotary_base"},
};

}  // namespace

void rename_aliases(YamlNode& scenario) {
  for (const Alias& alias : aliases) {
    YamlNode* section = scenario.find(alias.section);
    if (section == nullptr) continue;
    for (YamlNode::Entry& entry : section->entries) {
      if (entry.key != alias.name) continue;
      if (section->find(alias.key) != nullptr)
        throw InputError(entry.place, excerpt(alias.name) + " and " + excerpt(alias.key) + " are the same field, expected one");
      entry.key = alias.key;
    }
  }
}

std::vector<std::string> aliases_of(std::string_view section) {
  std::vector<std::string> names;
  for (const Alias& alias : aliases)
    if (alias.section == section) names.emplace_back(alias.name);
  return names;
}

}  // namespace tandem
