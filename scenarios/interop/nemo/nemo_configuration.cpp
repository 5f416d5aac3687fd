#include <algorithm>
#include <array>

#include "runtime/base/lower_case.h"
#include "runtime/base/nearest.h"
#include "scenarios/interop/megatron/megatron_settings.h"
#include "scenarios/interop/nemo/nemo.h"
#include "scenarios/interop/megatron/vocabulary.h"
#include "scenarios/reading/yaml_mapping.h"
#include "scenarios/spec/names.h"

namespace tandem::scenarios {
namespace {

/// Defaults are those of nemo/collections/nlp/models/language_modeling/megatron_gpt_model.py, release 1.23 and the
/// launcher's 24.07.
class NemoConfiguration {
 public:
  NemoConfiguration(const ForeignText& from, YamlNode root) : from_(from), tree_(std::move(root), from.file), settings_(tree_) {}

  Imported all() {
    check_shape();
    settings_.take_transformer("model");
    words();
    positions();
    settings_.take_parallel("model");
    settings_.flag("tp-comm-overlap", "model.ub_tp_comm_overlap", tree_.boolean("model.ub_tp_comm_overlap", false));
    const bool sends = tree_.integer("model.pipeline_model_parallel_size", 1) > 1;
    settings_.flag("no-overlap-p2p-communication", "model.overlap_p2p_comm",
                   sends && !tree_.boolean("model.overlap_p2p_comm", false));
    recompute();
    precision();
    optimizer();
    settings_.take_batch("model");
    sequence();
    Vocabulary vocabulary = vocabulary_of();
    vocabulary.put_into(settings_);
    pass_over_rest();
    Imported imported = settings_.read(from_.gpus > 0 ? from_.gpus : nemo_gpus(tree_));
    vocabulary.finish(imported);
    finish(imported);
    return imported;
  }

 private:
  ForeignText from_;
  ForeignTree tree_;
  MegatronSettings settings_;

  void check_shape() {
    std::vector<std::string> missing;
    for (const char* path : {"model.num_layers", "model.hidden_size", "model.num_attention_heads", "model.micro_batch_size"})
      if (!tree_.has(path)) missing.emplace_back(path);
    if (!missing.empty())
      throw InputError(tree_.place("model"), joined(missing) + (missing.size() > 1 ? " are missing" : " is missing") +
                                                 ", expected the whole configuration, not what overrides one");
    const std::string type = tree_.text("model.transformer_block_type", "pre_ln");
    if (type != "pre_ln")
      throw InputError(tree_.place("model.transformer_block_type"),
                       "model.transformer_block_type is " + excerpt(type) + ", expected pre_ln: no scenario has those norms");
    if (tree_.has("model.peft.peft_scheme"))
      throw InputError(tree_.place("model.peft.peft_scheme"),
                       "model.peft trains adapters beside frozen weights, which no scenario expresses; expected none");
    if (tree_.has("model.bert_binary_head"))
      throw InputError(tree_.place("model.bert_binary_head"),
                       "the model is a BERT, which masks words and not what comes later; expected a "
                       "decoder");
    if (tree_.has("model.encoder") || tree_.has("model.decoder"))
      throw InputError(tree_.place("model"), "the model has an encoder and a decoder, expected a decoder alone");
  }

  /// NeMo's own words for what TransformerConfig has others for.
  void words() {
    const std::string path = "model.activation", name = tree_.text(path, "gelu");
    const bool gated = name.find("swiglu") != std::string::npos;
    if (gated)
      settings_.flag("swiglu", path);
    else if (name == "squared-relu")
      settings_.flag("squared-relu", path);
    else if (name == "geglu" || name == "fast-geglu")
      settings_.flag("geglu", path);
    else if (name != "gelu" && name != "openai_gelu")
      throw InputError(tree_.place(path), path + " is " + excerpt(name) + ", expected gelu, geglu, swiglu or squared-relu");
    settings_.flag("disable-bias-linear", "model.bias", !tree_.boolean("model.bias", true));
    settings_.flag("untie-embeddings-and-output-weights", "model.share_embeddings_and_output_weights",
                   !tree_.boolean("model.share_embeddings_and_output_weights", true));
    const std::string norm = lower_case(tree_.text("model.normalization", "layernorm"));
    settings_.set("normalization", {norm == "rmsnorm" ? "RMSNorm" : "LayerNorm"}, "model.normalization");
    if (tree_.has("model.rotary_percentage") && tree_.number("model.rotary_percentage", 1) != 1)
      settings_.take_value("rotary-percent", "model.rotary_percentage");
  }

  void positions() {
    const std::string type = tree_.text("model.position_embedding_type", "learned_absolute");
    if (type == "learned_absolute") settings_.take_value("max-position-embeddings", "model.max_position_embeddings");
    tree_.find("model.max_position_embeddings");
  }

  void recompute() {
    const std::string granularity = "model.activations_checkpoint_granularity";
    for (const char* field : {"method", "num_layers"}) tree_.find("model.activations_checkpoint_" + std::string(field));
    for (const char* field :
         {"model.num_micro_batches_with_partial_activation_checkpoints", "model.activations_checkpoint_layers_per_pipeline"})
      if (tree_.has(field))
        settings_.note(placed(tree_.place(field), std::string(field) + " has no counterpart: all micro-batches and stages "
                                                                       "recompute as much"));
    const std::string name = tree_.text(granularity, "");
    if (name.empty()) return;
    settings_.set("recompute-granularity", {name}, granularity);
    if (name == "selective") return;
    settings_.take_value("recompute-method", "model.activations_checkpoint_method");
    settings_.take_value("recompute-num-layers", "model.activations_checkpoint_num_layers");
  }

  void precision() {
    const std::string path = "trainer.precision";
    const std::string name = tree_.text(path, tree_.text("model.precision", "32"));
    const bool bf16 = name.starts_with("bf16"), half = name.starts_with("16");
    if (!bf16 && !half && !name.starts_with("32"))
      throw InputError(tree_.place(path), path + " is " + excerpt(name) + ", expected bf16, 16 or 32");
    settings_.flag("bf16", path, bf16);
    settings_.flag("fp16", path, half);
    const std::string reduced = "model.optim.grad_sync_dtype", type = tree_.text(reduced, "fp32");
    if (half) settings_.flag("accumulate-allreduce-grads-in-fp32", path);
    settings_.flag("grad-reduce-in-bf16", reduced, bf16 && (type == "bf16" || type == "bfloat16"));
    if (bf16 && !tree_.boolean("model.megatron_amp_O2", false))
      settings_.note(placed(tree_.place("model.megatron_amp_O2"),
                            "model.megatron_amp_O2 is false: weights are kept in fp32 and cast for each use; here they are "
                            "kept in bf16, beside those that the optimizer updates"));
    if (!tree_.boolean("model.fp8", false)) return;
    settings_.set("fp8-format", {"hybrid"}, "model.fp8");
    settings_.set("fp8-recipe", {tree_.text("model.fp8_recipe", "delayed")}, "model.fp8");
    settings_.flag("fp8-param-gather", "model.fp8_params", tree_.boolean("model.fp8_params", false));
  }

  void optimizer() {
    const std::string path = "model.optim.name", name = tree_.text(path, "fused_adam");
    const bool sharded = name == "mcore_distributed_optim" || name.starts_with("distributed_fused_adam");
    if (!sharded && name.find("adam") == std::string::npos)
      throw InputError(tree_.place(path), path + " is " + excerpt(name) +
                                              ", expected fused_adam, distributed_fused_adam or mcore_distributed_optim");
    settings_.flag("use-distributed-optimizer", path, sharded);
    const bool alone = tree_.boolean("model.megatron_amp_O2", false) && !tree_.boolean("model.sequence_parallel", false) &&
                       tree_.integer("model.pipeline_model_parallel_size", 1) == 1;
    settings_.flag("overlap-grad-reduce", "model.optim.overlap_grad_sync",
                   sharded ? tree_.boolean("model.optim.overlap_grad_sync", true) : alone);
    tree_.find("model.optim.overlap_param_sync");
    if (!tree_.boolean("model.fsdp", false)) return;
    const std::string strategy = "model.fsdp_sharding_strategy", sharding = tree_.text(strategy, "full");
    if (sharding != "full" && sharding != "grad")
      throw InputError(tree_.place(strategy), strategy + " is " + excerpt(sharding) + ", expected full or grad");
    settings_.flag("use-megatron-fsdp", "model.fsdp");
    settings_.set("data-parallel-sharding-strategy", {sharding == "full" ? "optim_grads_params" : "optim_grads"}, strategy);
  }

  void sequence() {
    const std::string model = "model.encoder_seq_length", data = "model.data.seq_length";
    const std::string path = tree_.has(data) ? data : model;
    if (!tree_.has(path)) throw InputError(tree_.place("model"), model + " is missing, expected the tokens of a sequence");
    settings_.set("seq-length", {std::to_string(tree_.positive(path, 0))}, path);
    if (tree_.has(model) && tree_.integer(model, 0) != tree_.integer(path, 0))
      settings_.note(
          placed(tree_.place(path), path + " " + tree_.text(path, "") + " goes before " + model + " " + tree_.text(model, "")));
  }

  Vocabulary vocabulary_of() {
    Vocabulary vocabulary{.place = tree_.place("model.tokenizer"), .field = "model.tokenizer"};
    vocabulary.unit_path = "model.make_vocab_size_divisible_by";
    vocabulary.take(tree_, "model.override_vocab_size", true);
    for (const char* path : {"model.tokenizer.type", "model.tokenizer.model", "model.tokenizer.tokenizer_model"}) {
      if (vocabulary.entries == 0) vocabulary.by_type(tree_, path);
      if (vocabulary.entries == 0) vocabulary.by_name(tree_, path);
    }
    tree_.pass_over("model.tokenizer");
    return vocabulary;
  }

  /// What changes no step: logging, how weights begin, what Megatron-Core's preset knows to be fused, data.
  void pass_over_rest() {
    for (const char* section : {"run", "hydra", "defaults", "exp_manager", "name", "model.data", "model.nsys_profile", "trainer",
                                "model.optim", "restore_from_path", "inference"})
      tree_.pass_over(section);
    constexpr std::array fields{"resume_from_checkpoint",
                                "restore_from_path",
                                "restore_from_ckpt",
                                "mcore_gpt",
                                "init_method_std",
                                "use_scaled_init_method",
                                "ffn_dropout",
                                "do_layer_norm_weight_decay",
                                "pre_process",
                                "post_process",
                                "gradient_as_bucket_view",
                                "grad_div_ar_fusion",
                                "bias_dropout_add_fusion",
                                "get_attention_mask_from_fusion",
                                "native_amp_init_scale",
                                "native_amp_growth_interval",
                                "hysteresis",
                                "grad_allreduce_chunk_size_mb",
                                "sharp",
                                "transformer_engine",
                                "fp8_e4m3",
                                "fp8_hybrid",
                                "seed",
                                "sync_batch_comm",
                                "onnx_safe",
                                "apex_transformer_log_level",
                                "gc_interval",
                                "fsdp_sharding_strategy",
                                "fsdp_grad_reduce_dtype",
                                "fsdp_sharded_checkpoint",
                                "openai_gelu",
                                "normalize_attention_scores",
                                "scale_positional_embedding",
                                "attention_type",
                                "use_flash_attention",
                                "reduce_amax",
                                "ub_tp_comm_overlap_cfg",
                                "precision",
                                "use_emha",
                                "attention_backend",
                                "mcore_customization_config",
                                "dist_ckpt_format",
                                "dist_ckpt_load_on_device",
                                "dist_ckpt_parallel_save",
                                "encoder_seq_length",
                                "rotary_percentage",
                                "rotary_base",
                                "moe_router_topk",
                                "optimizer",
                                "tokenizer_type",
                                "log_train_loss"};
    for (const char* field : fields) tree_.pass_over("model." + std::string(field));
  }

  void finish(Imported& imported) {
    YamlNode& training = section_of(imported.document, "training");
    put(training, "framework", "nemo", {.file = from_.file});
    if (tree_.has("model.optim.bucket_cap_mb"))
      put(training, "bucket_MB", tree_.number("model.optim.bucket_cap_mb", 0), tree_.place("model.optim.bucket_cap_mb"));
    const std::string name = tree_.text("run.name", tree_.text("name", ""));
    if (!name.empty() && name.find("${") == std::string::npos) put(imported.document, "name", name, tree_.place("run.name"));
    put_nemo_gpus(imported, tree_, from_);
  }
};

}  // namespace

Imported read_nemo_configuration(const ForeignText& from, YamlNode root) {
  return NemoConfiguration(from, std::move(root)).all();
}

}  // namespace tandem::scenarios
