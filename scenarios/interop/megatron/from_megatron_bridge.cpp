#include <algorithm>
#include <array>

#include "runtime/base/nearest.h"
#include "scenarios/interop/foreign_tree.h"
#include "scenarios/interop/interop.h"
#include "scenarios/interop/megatron/megatron_settings.h"
#include "scenarios/interop/megatron/precision_recipes.h"
#include "scenarios/interop/megatron/vocabulary.h"
#include "scenarios/reading/yaml_mapping.h"

namespace tandem::scenarios {
namespace {

/// Sections of ConfigContainer that change no step.
constexpr const char* idle_sections[] = {"checkpoint",
                                         "logger",
                                         "rng",
                                         "scheduler",
                                         "rerun_state_machine",
                                         "ft",
                                         "profiling",
                                         "straggler",
                                         "tokenizer",
                                         "nvrx_straggler",
                                         "inprocess_restart",
                                         "validation",
                                         "tensor_inspect",
                                         "optimizer_config_override_provider"};

class BridgeReader {
 public:
  explicit BridgeReader(const ForeignText& from)
      : from_(from), tree_(with_precision_spelled_out(parse_yaml(from.text, from.file)), from.file), settings_(tree_) {}

  Imported all() {
    check_is_resolved();
    settings_.take_transformer("model");
    positions();
    settings_.take_parallel("model");
    const std::array<std::string, 3> sections{"mixed_precision", "model", "ddp"};
    const std::string own = "mixed_precision.grad_reduce_in_fp32", ddp = "ddp.grad_reduce_in_fp32";
    tree_.find(ddp);
    settings_.take_precision(sections, tree_.has(own) ? own : ddp, tree_.has("mixed_precision.fp8") ? "tensorwise" : "delayed");
    settings_.take_optimizer("optimizer");
    settings_.take_data_parallel("optimizer");
    settings_.take_data_parallel("ddp");
    settings_.take_fsdp("dist");
    settings_.take_fsdp("ddp");
    settings_.flag("use-torch-fsdp2", "dist.use_torch_fsdp2", tree_.boolean("dist.use_torch_fsdp2", false));
    settings_.flag("use-tp-pp-dp-mapping", "dist.use_tp_pp_dp_mapping", tree_.boolean("dist.use_tp_pp_dp_mapping", false));
    overlap();
    settings_.take_batch("train");
    sequence();
    Vocabulary vocabulary = vocabulary_of();
    vocabulary.put_into(settings_);
    std::vector<std::string> idle = pass_over_rest();
    Imported imported = settings_.read(from_.gpus);
    vocabulary.finish(imported);
    offload_activations(imported);
    if (!sequence_note_.empty()) imported.notes.push_back(sequence_note_);
    std::ranges::move(idle, std::back_inserter(imported.ignored));
    return imported;
  }

 private:
  ForeignText from_;
  ForeignTree tree_;
  MegatronSettings settings_;
  std::string sequence_note_;

  static YamlNode with_precision_spelled_out(YamlNode root) {
    if (YamlNode* precision = root.find("mixed_precision"); precision != nullptr && precision->kind == YamlNode::Kind::scalar)
      *precision = precision_recipe(*precision);
    return root;
  }

  void check_is_resolved() {
    if (tree_.root().kind != YamlNode::Kind::mapping)
      throw InputError({.file = from_.file}, "is no mapping, expected Megatron-Bridge's run_config.yaml");
    std::vector<std::string> missing;
    for (const char* path : {"model.num_layers", "model.hidden_size", "model.num_attention_heads", "train.micro_batch_size",
                             "train.global_batch_size"})
      if (!tree_.has(path)) missing.emplace_back(path);
    if (!missing.empty())
      throw InputError(tree_.place("model"),
                       joined(missing) + (missing.size() > 1 ? " are missing: " : " is missing: ") +
                           "the file overrides a recipe; expected the resolved run_config.yaml, which a run "
                           "writes beside its checkpoints and prints when it begins");
    const std::string provider = target_name(*tree_.find("model"));
    if (provider.starts_with("T5"))
      throw InputError(tree_.place("model"), "the model is a " + excerpt(provider) +
                                                 " with encoder and decoder, which no scenario expresses; expected a decoder");
    if (const YamlNode* peft = tree_.find("peft"))
      throw InputError(peft->place, "peft trains adapters beside frozen weights, which no scenario expresses; expected null");
    tree_.pass_over("model._target_");
  }

  /// Learned positions are as many as the model's sequence has.
  void positions() {
    const std::string path = tree_.has("model.max_position_embeddings") ? "model.max_position_embeddings" : "model.seq_length";
    if (tree_.text("model.position_embedding_type", "learned_absolute") == "learned_absolute" && tree_.has(path))
      settings_.set("max-position-embeddings", {tree_.text(path, "")}, path);
  }

  /// The data's length is what is trained on, whatever the model admits (`sequence_length` before 0.3).
  void sequence() {
    tree_.also_called("dataset.seq_length", "dataset.sequence_length");
    const std::string path = tree_.has("dataset.seq_length") ? "dataset.seq_length" : "model.seq_length";
    if (!tree_.has(path))
      throw InputError(tree_.place("dataset"), "dataset.seq_length is missing, expected the tokens of a sequence");
    settings_.set("seq-length", {std::to_string(tree_.positive(path, 0))}, path);
    if (tree_.has("model.seq_length") && tree_.integer("model.seq_length", 0) != tree_.integer(path, 0))
      sequence_note_ =
          placed(tree_.place(path), tree_.spelled(path) + " " + tree_.text(path, "") + " goes before model.seq_length " +
                                        tree_.text("model.seq_length", "") + ": sequences are as long as the data's");
    tree_.pass_over("dataset");
  }

  Vocabulary vocabulary_of() {
    Vocabulary vocabulary{.place = tree_.place("model"), .field = "model.vocab_size"};
    vocabulary.unit_path = "model.make_vocab_size_divisible_by";
    const bool pads = tree_.boolean("model.should_pad_vocab", !tree_.has("model.vocab_size"));
    vocabulary.take(tree_, "model.vocab_size", pads);
    if (vocabulary.entries == 0) vocabulary.take(tree_, "tokenizer.vocab_size", pads);
    if (vocabulary.entries == 0) vocabulary.by_name(tree_, "tokenizer.tokenizer_model");
    if (vocabulary.entries == 0) vocabulary.by_type(tree_, "tokenizer.tokenizer_type");
    return vocabulary;
  }

  /// CommOverlapConfig sets them when training begins (bridge/training/comm_overlap.py): what is stated, else its defaults.
  void overlap() {
    const YamlNode* mapping = tree_.find("comm_overlap");
    if (mapping == nullptr) return;
    const std::string own = "comm_overlap.user_comm_overlap_cfg.";
    const auto stated = [&](const char* field) {
      tree_.also_called("comm_overlap." + std::string(field), own + field);
      return "comm_overlap." + std::string(field);
    };
    const std::string tp = stated("tp_comm_overlap"), p2p = stated("overlap_p2p_comm"), reduce = stated("overlap_grad_reduce"),
                      gather = stated("overlap_param_gather"), bucket = stated("bucket_size"),
                      experts = stated("overlap_moe_expert_parallel_comm"), weights = stated("delay_wgrad_compute");
    const std::int64_t stages = tree_.integer("model.pipeline_model_parallel_size", 1),
                       chunks = tree_.integer("model.virtual_pipeline_model_parallel_size", 1);
    settings_.flag("tp-comm-overlap", tp, tree_.boolean(tp, false));
    settings_.flag("no-overlap-p2p-communication", p2p, stages > 1 && !tree_.boolean(p2p, chunks > 1));
    const bool has_replicas = from_.gpus == 0 || from_.gpus > replica_size();
    if (tree_.boolean("ddp.use_distributed_optimizer", tree_.boolean("optimizer.use_distributed_optimizer", false))) {
      settings_.flag("overlap-grad-reduce", reduce, tree_.boolean(reduce, has_replicas));
      settings_.flag("overlap-param-gather", gather, tree_.boolean(gather, has_replicas));
      constexpr std::int64_t usual_bucket = std::int64_t{128} * 1024 * 1024;
      settings_.set("ddp-bucket-size", {std::to_string(tree_.integer(bucket, usual_bucket))}, bucket);
    }
    if (tree_.has(experts)) settings_.flag("overlap-moe-expert-parallel-comm", experts, tree_.boolean(experts, false));
    if (tree_.has(weights)) settings_.flag("delay-wgrad-compute", weights, tree_.boolean(weights, false));
    tree_.pass_over("comm_overlap");
  }

  std::int64_t replica_size() {
    std::int64_t size = 1;
    for (const char* axis : {"tensor", "pipeline", "context"}) {
      const std::string of_model = std::string(axis) == "context" ? "" : "_model";
      size *= tree_.positive("model." + std::string(axis) + of_model + "_parallel_size", 1);
    }
    return size;
  }

  /// Returns the sections that say nothing of a step, where they say anything.
  std::vector<std::string> pass_over_rest() {
    std::vector<std::string> idle;
    for (const char* section : idle_sections) {
      const YamlNode* node = tree_.find(section);
      if (node != nullptr && !ForeignTree(*node, from_.file).unknown().empty()) idle.emplace_back(section);
      tree_.pass_over(section);
    }
    for (const char* field : {"ddp", "dist", "optimizer", "train", "mixed_precision"}) idle_fields(field);
    for (const char* field : {"cpu_offloading", "cpu_offloading_num_layers", "moe_router_topk"})
      tree_.find("model." + std::string(field));
    return idle;
  }

  /// Names in those sections that change no step.
  void idle_fields(const std::string& section) {
    constexpr std::array names{"average_in_collective",
                               "check_for_nan_in_grad",
                               "gradient_reduce_div_fusion",
                               "preserve_fp32_weights",
                               "data_parallel_sharding_strategy",
                               "outer_dp_sharding_strategy",
                               "align_grad_reduce",
                               "distributed_backend",
                               "distributed_timeout_minutes",
                               "local_rank",
                               "use_gloo_process_groups",
                               "adam_beta1",
                               "adam_beta2",
                               "adam_eps",
                               "clip_grad",
                               "decoupled_weight_decay",
                               "hysteresis",
                               "initial_loss_scale",
                               "loss_scale_window",
                               "lr",
                               "min_loss_scale",
                               "min_lr",
                               "main_grads_dtype",
                               "params_dtype",
                               "pin_cpu_grads",
                               "pin_cpu_params",
                               "sgd_momentum",
                               "store_param_remainders",
                               "timers",
                               "weight_decay",
                               "fp8_recipe",
                               "bf16",
                               "fp16",
                               "fp32",
                               "eval_interval",
                               "eval_iters",
                               "exit_signal",
                               "manual_gc",
                               "manual_gc_eval",
                               "manual_gc_interval",
                               "train_iters",
                               "autocast_dtype",
                               "pipeline_dtype",
                               "fp8_amax_compute_algo",
                               "fp8_amax_history_len",
                               "fp8_wgrad",
                               "fp8_margin",
                               "fp8_param",
                               "fp4_param",
                               "fp4_recipe",
                               "overlap_param_gather",
                               "muon_momentum",
                               "muon_scale_mode",
                               "muon_extra_scale_factor",
                               "muon_num_ns_steps",
                               "muon_split_qkv",
                               "empty_unused_memory_level"};
    for (const char* name : names) tree_.pass_over(section + "." + name);
  }

  void offload_activations(Imported& imported) {
    if (!tree_.boolean("model.cpu_offloading", false)) return;
    const std::string path = "model.cpu_offloading_num_layers";
    put(section_of(section_of(imported.document, "training"), "offload"), "activations", tree_.integer(path, 0),
        tree_.place(path));
  }
};

}  // namespace

/// Reads the run_config.yaml of Megatron-Bridge 0.1 and later (bridge/training/config.py, ConfigContainer), resolved: as a run
/// writes and prints it.
Imported from_megatron_bridge(const ForeignText& from) { return BridgeReader(from).all(); }

}  // namespace tandem::scenarios
