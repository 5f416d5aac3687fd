#include <algorithm>
#include <array>

#include "runtime/base/divide_up.h"
#include "runtime/base/nearest.h"
#include "scenarios/interop/megatron/megatron_settings.h"
#include "scenarios/interop/megatron/precision_recipes.h"
#include "scenarios/interop/nemo/nemo.h"
#include "scenarios/reading/preset_specs.h"
#include "scenarios/reading/yaml_mapping.h"

namespace tandem::scenarios {
namespace {

/// A class of nemo/collections/llm/gpt/model/*.py and the preset of the same shape.
struct RecipeModel {
  std::string_view name;
  const char* preset;
};

constexpr std::array recipe_models{
    RecipeModel{"Llama3Config8B", "llama3-8b"},
    RecipeModel{"Llama3Config70B", "llama3-70b"},
    RecipeModel{"Llama31Config8B", "llama3.1-8b"},
    RecipeModel{"Llama31Config70B", "llama3.1-70b"},
    RecipeModel{"Llama31Config405B", "llama3.1-405b"},
    RecipeModel{"MistralConfig7B", "mistral-7b"},
    RecipeModel{"MixtralConfig8x7B", "mixtral-8x7b"},
    RecipeModel{"MixtralConfig8x22B", "mixtral-8x22b"},
    RecipeModel{"GPTConfig175B", "gpt3-175b"},
    RecipeModel{"Nemotron4Config15B", "nemotron-4-15b"},
    RecipeModel{"Nemotron4Config340B", "nemotron-4-340b"},
    RecipeModel{"NemotronHConfig8B", "nemotron-h-8b"},
    RecipeModel{"NemotronHConfig47B", "nemotron-h-47b"},
    RecipeModel{"NemotronHConfig56B", "nemotron-h-56b"},
    RecipeModel{"DeepSeekV2LiteConfig", "deepseek-v2-lite"},
    RecipeModel{"DeepSeekV2Config", "deepseek-v2"},
    RecipeModel{"DeepSeekV3Config", "deepseek-v3"},
    RecipeModel{"Qwen3Config600M", "qwen3-0.6b"},
    RecipeModel{"Qwen3Config1P7B", "qwen3-1.7b"},
    RecipeModel{"Qwen3Config4B", "qwen3-4b"},
    RecipeModel{"Qwen3Config8B", "qwen3-8b"},
    RecipeModel{"Qwen3Config14B", "qwen3-14b"},
    RecipeModel{"Qwen3Config32B", "qwen3-32b"},
    RecipeModel{"Qwen3Config30B_A3B", "qwen3-30b-a3b"},
    RecipeModel{"Qwen3Config235B_A22B", "qwen3-235b-a22b"},
    RecipeModel{"Gemma3Config1B", "gemma3-1b"},
    RecipeModel{"Gemma3Config4B", "gemma3-4b"},
    RecipeModel{"Gemma3Config12B", "gemma3-12b"},
    RecipeModel{"Gemma3Config27B", "gemma3-27b"},
    RecipeModel{"Llama4Experts16Config", "llama4-scout"},
    RecipeModel{"Llama4Experts128Config", "llama4-maverick"},
};

/// A field of the model's configuration that changes its preset's.
struct ShapeField {
  const char *theirs, *ours;
};
constexpr std::array shape_fields{ShapeField{"num_layers", "layers"},       ShapeField{"hidden_size", "hidden"},
                                  ShapeField{"ffn_hidden_size", "ffn"},     ShapeField{"num_attention_heads", "heads"},
                                  ShapeField{"kv_channels", "head_dim"},    ShapeField{"num_query_groups", "kv_heads"},
                                  ShapeField{"rotary_base", "rotary_base"}, ShapeField{"mtp_num_layers", "mtp_depth"}};
constexpr std::array expert_shape_fields{ShapeField{"num_moe_experts", "experts"},
                                         ShapeField{"moe_router_topk", "top_k"},
                                         ShapeField{"moe_ffn_hidden_size", "ffn"},
                                         ShapeField{"moe_expert_capacity_factor", "capacity_factor"},
                                         ShapeField{"moe_pad_expert_input_to_capacity", "pad_to_capacity"},
                                         ShapeField{"moe_aux_loss_coeff", "balance_loss"}};

class NemoRecipe {
 public:
  NemoRecipe(const ForeignText& from, YamlNode root)
      : from_(from), tree_(with_plugins_joined(std::move(root)), from.file), settings_(tree_) {}

  Imported all() {
    if (tree_.has("peft"))
      throw InputError(tree_.place("peft"),
                       "peft trains adapters beside frozen weights, which no scenario expresses; expected none");
    find_preset();
    stand_in();
    settings_.take_parallel("trainer.strategy");
    settings_.take_parallel("model.config");  // where graphs and recomputation are
    for (const MegatronField& field : parallel_fields()) tree_.find(strategy_ + "." + std::string(field.field));
    settings_.take_parallel("trainer.strategy");
    settings_.take_optimizer("optim.config");
    settings_.take_data_parallel("optim.config");
    settings_.take_data_parallel(strategy_ + ".ddp");
    fsdp();
    const std::array<std::string, 2> sections{"trainer.plugins", "model.config"};
    const std::string own = "trainer.plugins.grad_reduce_in_fp32";
    settings_.take_precision(sections, tree_.has(own) ? own : strategy_ + ".ddp.grad_reduce_in_fp32", "tensorwise");
    overlap();
    settings_.take_batch("data");
    settings_.set("seq-length", {std::to_string(tree_.positive("data.seq_length", 0))}, "data.seq_length");
    const std::array rest{"log", "resume", "data", "optim", "trainer", "model"};
    for (const char* section : rest) tree_.pass_over(section);
    Imported imported = settings_.read(from_.gpus > 0 ? from_.gpus : nemo_gpus(tree_));
    put_model(imported);
    put(section_of(imported.document, "training"), "framework", "nemo", {.file = from_.file});
    put_nemo_gpus(imported, tree_, from_);
    return imported;
  }

 private:
  ForeignText from_;
  ForeignTree tree_;
  MegatronSettings settings_;
  const std::string strategy_ = "trainer.strategy", config_ = "model.config";
  std::string preset_;
  ModelSpec shape_;

  /// Plugins and callbacks are lists, or one mapping; what they say is found by the fields' names alone.
  static YamlNode with_plugins_joined(YamlNode root) {
    YamlNode* trainer = root.find("trainer");
    for (const char* key : {"plugins", "callbacks"}) {
      YamlNode* list = trainer->find(key);
      if (list == nullptr) continue;
      if (list->kind == YamlNode::Kind::scalar && std::string_view(key) == "plugins") *list = precision_recipe(*list);
      if (list->kind != YamlNode::Kind::sequence) continue;
      YamlNode joined_items = make_node(YamlNode::Kind::mapping, list->place);
      for (const YamlNode& item : list->items)
        for (const YamlNode::Entry& entry : item.entries) put(joined_items, entry.key, entry.value);
      *list = std::move(joined_items);
    }
    if (YamlNode* plugins = trainer->find("plugins"); plugins != nullptr && plugins->find("precision") != nullptr) {
      const YamlNode* type = plugins->find("precision");
      const bool half = type->text.starts_with("16");
      if (plugins->find("bf16") == nullptr && !type->text.starts_with("32"))
        put(*plugins, half ? "fp16" : "bf16", true, type->place);
    }
    return root;
  }

  void find_preset() {
    const YamlNode* node = tree_.find(config_);
    const std::string name = node == nullptr ? std::string() : target_name(*node);
    std::vector<std::string> known;
    for (const RecipeModel& model : recipe_models) {
      known.emplace_back(model.name);
      if (name == model.name) preset_ = model.preset;
    }
    if (preset_.empty())
      throw InputError(tree_.place(node == nullptr ? "model" : config_),
                       "the shape of model.config " + excerpt(name) + " is not known here" + suggestion(name, known));
    shape_ = model_preset(preset_);
    shape_.layers = tree_.integer(config_ + ".num_layers", shape_.layers);
  }

  /// Sizes for the reader of arguments, which uses them where layers are dealt out; the model itself is the preset.
  void stand_in() {
    const auto size = [&](const char* argument, std::int64_t value) {
      settings_.set(argument, {std::to_string(value)}, config_);
    };
    size("num-layers", shape_.layers);
    size("hidden-size", shape_.hidden);
    size("num-attention-heads", shape_.heads);
    size("padded-vocab-size", shape_.vocab);
    settings_.set("position-embedding-type", {"rope"}, config_);
    const std::string dispatcher = config_ + ".moe_token_dispatcher_type";
    if (shape_.moe.experts == 0) return;
    size("num-experts", shape_.moe.experts);
    settings_.set("moe-token-dispatcher-type", {tree_.text(dispatcher, "alltoall")}, dispatcher);
    for (const char* field : {"moe_enable_deepep", "overlap_moe_expert_parallel_comm", "delay_wgrad_compute"}) {
      std::string argument = field;
      std::ranges::replace(argument, '_', '-');
      settings_.flag(argument, config_ + "." + field, tree_.boolean(config_ + "." + field, false));
    }
  }

  void fsdp() {
    const std::string path = strategy_ + ".fsdp", sharding = strategy_ + ".ddp.data_parallel_sharding_strategy";
    const YamlNode* node = tree_.find(path);
    if (node == nullptr || truth_of(*node) == Truth::no) return;
    settings_.flag("use-megatron-fsdp", path);
    settings_.set("data-parallel-sharding-strategy", {tree_.text(sharding, "optim_grads_params")}, path);
  }

  /// nemo/lightning/pytorch/callbacks/megatron_comm_overlap.py: sets what it is told, else its defaults.
  void overlap() {
    const std::string callbacks = "trainer.callbacks.";
    if (!tree_.mentions(callbacks + "tp_comm_overlap")) return;
    const bool sharded = tree_.boolean("optim.config.use_distributed_optimizer", false);
    settings_.flag("tp-comm-overlap", callbacks + "tp_comm_overlap", tree_.boolean(callbacks + "tp_comm_overlap", false));
    const std::int64_t stages = tree_.integer(strategy_ + ".pipeline_model_parallel_size", 1),
                       chunks = tree_.integer(strategy_ + ".virtual_pipeline_model_parallel_size", 1);
    const std::string p2p = callbacks + "overlap_p2p_comm";
    settings_.flag("no-overlap-p2p-communication", p2p, stages > 1 && !tree_.boolean(p2p, chunks > 1));
    if (!sharded) return;
    settings_.flag("overlap-grad-reduce", callbacks + "overlap_grad_reduce",
                   tree_.boolean(callbacks + "overlap_grad_reduce", true));
    settings_.flag("overlap-param-gather", callbacks + "overlap_param_gather",
                   tree_.boolean(callbacks + "overlap_param_gather", true));
  }

  void put_model(Imported& imported) {
    YamlNode model = make_node(YamlNode::Kind::mapping, tree_.place(config_));
    put(model, "preset", preset_, tree_.place(config_));
    for (const auto& [theirs, ours] : shape_fields) copy(model, theirs, ours);
    for (const auto& [theirs, ours] : expert_shape_fields)
      if (tree_.has(config_ + "." + theirs)) copy(section_of(model, "moe", tree_.place(config_)), theirs, ours);
    const std::int64_t tp = tree_.integer(strategy_ + ".tensor_model_parallel_size", 1);
    const std::int64_t unit = tree_.integer(config_ + ".make_vocab_size_divisible_by", 128) * tp;
    const std::int64_t vocab = tree_.integer(config_ + ".vocab_size", shape_.vocab);
    const std::int64_t padded = round_up(vocab, unit);
    if (padded != shape_.vocab) put(model, "vocab", padded, tree_.place(config_));
    put(imported.document, "model", std::move(model));
    imported.assumed.push_back("the model of preset " + preset_ + " for " + target_name(*tree_.find(config_)) +
                               ", whose fields are not in the file" +
                               (padded != vocab ? ", its vocabulary padded to " + grouped(padded) : ""));
  }

  void copy(YamlNode& to, const char* theirs, const char* ours) {
    const std::string path = config_ + "." + theirs;
    if (const YamlNode* node = tree_.find(path)) put(to, ours, node->text, node->place);
  }
};

}  // namespace

Imported read_nemo_recipe(const ForeignText& from, YamlNode root) { return NemoRecipe(from, std::move(root)).all(); }

}  // namespace tandem::scenarios
