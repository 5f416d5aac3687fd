#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "scenarios/interop/export_text.h"
#include "scenarios/interop/interop.h"
#include "scenarios/interop/launch/launch.h"
#include "scenarios/interop/megatron/layer_pattern.h"
#include "scenarios/interop/megatron/megatron_fields.h"
#include "scenarios/interop/megatron/program_arguments.h"
#include "scenarios/interop/scenario_writers.h"

namespace tandem::scenarios {
namespace {

/// Writes ConfigContainer section by section, from the arguments that the same scenario is for pretrain_gpt.py.
class BridgeWriter {
 public:
  explicit BridgeWriter(const ScenarioWithDocument& read)
      : scenario_(read.scenario),
        megatron_(megatron_arguments(read)),
        arguments_(read_launch({.text = megatron_.text, .file = "arguments"}), "arguments") {}

  Exported all() {
    out_.comment(scenario_.name +
                 " for Megatron-Bridge: ConfigContainer.from_yaml reads it; data, tokenizer and length of the run are yours");
    out_.line(fmt::format("_target_: {}.ConfigContainer", config));
    model();
    section("dataset", "GPTDatasetConfig");
    add("seq_length", value("seq-length"));
    for (const char* field : {"reset_position_ids", "reset_attention_mask", "eod_mask_loss"}) add(field, "false");
    section("train", "TrainingConfig");
    add("micro_batch_size", value("micro-batch-size"));
    add("global_batch_size", value("global-batch-size"));
    precision();
    data_parallel();
    section("dist", "DistributedInitConfig");
    flag("use_tp_pp_dp_mapping", "use-tp-pp-dp-mapping");
    section("optimizer", "OptimizerConfig");
    fields(optimizer_fields());
    fields(optimizer_type_fields());
    flag("use_distributed_optimizer", "use-distributed-optimizer");
    offload();
    section("scheduler", "SchedulerConfig");
    section("logger", "LoggerConfig");
    section("tokenizer", "");
    out_.line("  _target_: megatron.bridge.training.tokenizers.config.TokenizerConfig");
    section("checkpoint", "CheckpointConfig");
    for (const Lost& lost : megatron_.lost)
      if (lost.field != "training.offload.activations") out_.lose(lost.field, lost.why);
    return out_.take();
  }

 private:
  static constexpr const char* config = "megatron.bridge.training.config";
  const Scenario& scenario_;
  Exported megatron_;
  ProgramArguments arguments_;
  ExportText out_;

  void section(const char* name, const char* target) {
    out_.line(fmt::format("{}:", name));
    if (*target != '\0') out_.line(fmt::format("  _target_: {}.{}", config, target));
  }
  void add(std::string_view field, std::string_view text) { out_.line(fmt::format("  {}: {}", field, text)); }
  std::string value(std::string_view argument) { return arguments_.text(argument); }
  void flag(const char* field, const char* argument) { add(field, arguments_.has(argument) ? "true" : "false"); }
  /// A name such as torch.bfloat16, as Hydra's mappings have it.
  void target(std::string_view field, std::string_view name) {
    out_.line(fmt::format("  {}: {{_target_: {}, _call_: false}}", field, name));
  }

  void fields(std::span<const MegatronField> rows) {
    for (const auto& [field, argument, kind] : rows) {
      const bool gates = argument == "swiglu" && (arguments_.has("quick-geglu") || arguments_.has("geglu"));
      const bool stands = gates || arguments_.has(argument);
      // Not every release has these, nor every class.
      if (!stands && (field.starts_with("muon_") || field.starts_with("dsa_"))) continue;
      if (kind == FieldKind::flag || kind == FieldKind::inverse_flag) {
        add(field, stands == (kind == FieldKind::flag) ? "true" : "false");
      } else if (stands && kind == FieldKind::type) {
        target(field, torch_type(value(argument)));
      } else if (stands) {
        const std::vector<std::string> values = arguments_.values(argument);
        add(field, values.size() > 1 ? listed(values) : quoted(values.front()));
      }
    }
  }

  static std::string torch_type(const std::string& name) {
    return name == "fp32"   ? "torch.float32"
           : name == "bf16" ? "torch.bfloat16"
           : name == "fp16" ? "torch.float16"
                            : "torch.uint8";
  }
  static std::string listed(const std::vector<std::string>& values) { return fmt::format("[{}]", fmt::join(values, ", ")); }
  /// Letters of layers and layouts are text, whatever YAML would make of them.
  static std::string quoted(const std::string& text) {
    return text.find_first_of("*-|,()[]'") == std::string::npos ? text : "'" + text + "'";
  }

  void model() {
    const bool latent = scenario_.model.mla.enabled(), hybrid = arguments_.has("hybrid-override-pattern");
    out_.line("model:");
    add("_target_", latent   ? "megatron.bridge.models.mla_provider.MLAModelProvider"
                    : hybrid ? "megatron.bridge.models.mamba.mamba_provider.MambaModelProvider"
                             : "megatron.bridge.models.gpt_provider.GPTModelProvider");
    fields(transformer_fields());
    const char* const function = arguments_.has("swiglu")         ? "torch.nn.functional.silu"
                                 : arguments_.has("quick-geglu")  ? "megatron.core.fusions.fused_bias_geglu.quick_gelu"
                                 : arguments_.has("squared-relu") ? "megatron.core.activations.squared_relu"
                                                                  : "torch.nn.functional.gelu";
    target("activation_func", function);
    add("vocab_size", value("padded-vocab-size"));
    add("should_pad_vocab", "false");
    add("seq_length", value("max-position-embeddings"));
    if (arguments_.has("num-query-groups")) add("num_query_groups", value("num-query-groups"));
    flag("multi_latent_attention", "multi-latent-attention");
    if (latent) fields(latent_attention_fields());
    if (hybrid) fields(mamba_fields());
    attention();
    if (arguments_.has("num-experts")) experts();
    fields(parallel_fields());
    if (arguments_.has("cp-comm-type")) add("cp_comm_type", quoted(value("cp-comm-type")));
    if (arguments_.has("pipeline-model-parallel-layout"))
      add("pipeline_model_parallel_layout", quoted(value("pipeline-model-parallel-layout")));
    recompute();
    flag("fp8_output_proj", "fp8-output-proj");
    if (arguments_.has("cuda-graph-impl")) {
      add("cuda_graph_impl", value("cuda-graph-impl"));
      add("cuda_graph_scope", listed(arguments_.values("cuda-graph-scope")));
    }
    flag("activation_func_fp8_input_store", "activation-func-fp8-input-store");
    flag("tp_only_amax_red", "tp-only-amax-red");
    if (const std::int64_t layers = scenario_.training.offload.activations; layers > 0) {
      add("cpu_offloading", "true");
      add("cpu_offloading_num_layers", std::to_string(layers));
    }
  }

  void attention() {
    if (arguments_.has("window-size")) {
      std::string size = value("window-size");
      std::erase_if(size, [](char c) { return c == '(' || c == ')'; });
      add("window_size", "[" + size + "]");
      if (arguments_.has("window-attn-skip-freq")) add("window_attn_skip_freq", value("window-attn-skip-freq"));
    }
    if (!arguments_.has("attention-backend")) return;
    constexpr std::array<std::string_view, 6> numbered{"", "flash", "fused", "unfused", "local", "auto"};
    const auto number = std::ranges::find(numbered, value("attention-backend")) - numbered.begin();
    out_.line(fmt::format(
        "  attention_backend: {{_target_: megatron.core.transformer.enums.AttnBackend, _args_: [{}], _call_: true}}", number));
  }

  void experts() {
    fields(expert_fields());
    if (!arguments_.has("moe-layer-freq")) return;
    const std::string pattern = value("moe-layer-freq");
    const auto layers = evaluate_layer_pattern(pattern);
    add("moe_layer_freq", layers ? fmt::format("[{}]", fmt::join(*layers, ", ")) : pattern);
  }

  void recompute() {
    if (!arguments_.has("recompute-granularity")) return;
    add("recompute_granularity", value("recompute-granularity"));
    if (arguments_.has("recompute-method")) add("recompute_method", value("recompute-method"));
    if (arguments_.has("recompute-num-layers")) add("recompute_num_layers", value("recompute-num-layers"));
    if (arguments_.has("recompute-modules")) add("recompute_modules", listed(arguments_.values("recompute-modules")));
  }

  /// Only what is on is said of fp8 and fp4: their classes have defaults of their own.
  void precision() {
    out_.line("mixed_precision:");
    out_.line("  _target_: megatron.bridge.training.mixed_precision.MixedPrecisionConfig");
    flag("bf16", "bf16");
    flag("fp16", "fp16");
    const bool half = arguments_.has("fp16");
    const bool wide = half ? arguments_.has("accumulate-allreduce-grads-in-fp32") : !arguments_.has("grad-reduce-in-bf16");
    add("grad_reduce_in_fp32", wide ? "true" : "false");
    const std::string type = arguments_.has("fp8-format") ? "fp8" : arguments_.has("fp4-format") ? "fp4" : "";
    if (type.empty()) return;
    add(type, value(type + "-format"));
    const std::string recipe = type + "-recipe";
    add(type + "_recipe", arguments_.has(recipe) ? value(recipe) : "delayed");
    flag((type + "_param_gather").c_str(), (type + "-param-gather").c_str());
    flag("fp8_dot_product_attention", "fp8-dot-product-attention");
    flag("reuse_grad_buf_for_mxfp8_param_ag", "reuse-grad-buf-for-mxfp8-param-ag");
    if (!arguments_.has("first-last-layers-bf16")) return;
    add("first_last_layers_bf16", "true");
    add("num_layers_at_start_in_bf16", value("num-layers-at-start-in-bf16"));
    add("num_layers_at_end_in_bf16", value("num-layers-at-end-in-bf16"));
  }

  void data_parallel() {
    section("ddp", "DistributedDataParallelConfig");
    fields(data_parallel_fields());
    if (!arguments_.has("use-megatron-fsdp")) return;
    add("use_megatron_fsdp", "true");
    add("data_parallel_sharding_strategy", value("data-parallel-sharding-strategy"));
  }

  void offload() {
    if (!arguments_.has("optimizer-cpu-offload")) return;
    add("optimizer_offload_fraction", value("optimizer-offload-fraction"));
    flag("overlap_cpu_optimizer_d2h_h2d", "overlap-cpu-optimizer-d2h-h2d");
  }
};

}  // namespace

/// Writes a run_config.yaml of Megatron-Bridge, as of 0.3 (bridge/training/config.py): the fields that a scenario decides.
Exported megatron_bridge_yaml(const ScenarioWithDocument& read) { return BridgeWriter(read).all(); }

}  // namespace tandem::scenarios
