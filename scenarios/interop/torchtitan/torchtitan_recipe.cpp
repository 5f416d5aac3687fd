#include <spdlog/fmt/fmt.h>

#include <cctype>

#include "scenarios/interop/export_text.h"
#include "scenarios/interop/torchtitan/torchtitan_job.h"

namespace tandem::scenarios {
namespace {

/// Indented by four spaces a level.
class RecipeWriter {
 public:
  explicit RecipeWriter(TitanJob job) : job_(std::move(job)) {}

  Exported all() {
    out_.comment(job_.description + " for a config_registry.py of TorchTitan, 0.3 and later");
    out_.comment("torchrun .. -m torchtitan.train --module MODULE --config " + function_name());
    imports();
    out_.line("\n\ndef " + function_name() + "() -> Trainer.Config:");
    if (compiles()) out_.line("    compile_config = " + compile());
    out_.line("    model_spec = " + model());
    out_.line("    return Trainer.Config(");
    out_.line("        loss=ChunkedLossWrapper.Config(");
    out_.line("            loss_fn=CrossEntropyLoss.Config(global_vocab_size=decoder_vocab_size(model_spec)),");
    out_.line("        ),");
    out_.line("        model_spec=model_spec,");
    training();
    parallelism();
    checkpointing();
    if (compiles()) out_.line("        compile=compile_config,");
    out_.line("    )");
    for (Lost& lost : job_.lost) out_.lose(std::move(lost.field), std::move(lost.why));
    return out_.take();
  }

 private:
  TitanJob job_;
  ExportText out_;

  bool pipelined() const { return number("pipeline_parallel_degree", 1) > 1; }
  bool compiles() const { return job_.overlap_tp; }
  std::int64_t number(std::string_view wanted, std::int64_t fallback) const {
    for (const auto& [key, value] : job_.parallelism)
      if (key == wanted) return value.number;
    return fallback;
  }

  std::string converter() const {
    if (job_.precision == DType::f4) return "NVFP4LinearConverter";
    if (job_.precision != DType::f8) return {};
    return job_.recipe == Recipe::mxfp8 ? "MXFP8LinearConverter" : "Float8LinearConverter";
  }

  std::string function_name() const {
    std::string name;
    for (const char c : job_.description) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    return name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0 ? "run_" + name : name;
  }

  void imports() {
    using enum TitanCheckpointing::Mode;
    const std::string converted = converter();
    out_.line("from torchtitan.components.loss import ChunkedLossWrapper, CrossEntropyLoss");
    if (!converted.empty()) out_.line("from torchtitan.components.quantization import " + converted);
    out_.line(
        fmt::format("from torchtitan.config import {}ParallelismConfig, TrainingConfig", compiles() ? "CompileConfig, " : ""));
    if (job_.checkpointing.mode == full) out_.line("from torchtitan.distributed.activation_checkpoint import FullAC");
    if (job_.checkpointing.mode == operation) out_.line("from torchtitan.distributed.activation_checkpoint import SelectiveAC");
    out_.line("from torchtitan.models.common.config_utils import decoder_vocab_size");
    out_.line(job_.model ? fmt::format("from torchtitan.models.{} import model_registry", job_.model->name)
                         : "from mine import model_registry  # whose model has the shape of no flavor");
    out_.line("from torchtitan.trainer import Trainer");
  }

  std::string model() const {
    std::string call = fmt::format("model_registry(\"{}\"", job_.model ? job_.model->flavor : "mine");
    for (const auto& [key, value] : job_.parallelism)
      if (key == "expert_parallel_comm_backend") call += fmt::format(", moe_comm_backend=\"{}\"", value.text);
    const std::string converted = converter();
    const std::string_view fields = converted == "Float8LinearConverter" ? "filter_fqns=[\"lm_head\"], " : "";
    if (!converted.empty())
      call +=
          fmt::format(", converters=[{}.Config({}model_compile_enabled={})]", converted, fields, compiles() ? "True" : "False");
    return call + ")";
  }

  static std::string compile() { return "CompileConfig(enable=True, enable_async_tensor_parallel=True)"; }

  void training() {
    out_.line("        training=TrainingConfig(");
    out_.line(fmt::format("            num_tokens_per_microbatch_per_dp_rank={} * {},", job_.micro_batch, job_.sequence));
    out_.line(fmt::format("            num_tokens_per_train_step={} * {},", job_.global_batch, job_.sequence));
    out_.line(fmt::format("            max_context_length={},", job_.sequence));
    out_.line(fmt::format("            mixed_precision_param=\"{}\",", job_.fp32 ? "float32" : "bfloat16"));
    out_.line("        ),");
  }

  /// Names of 0.2 that are others now. Rotation and the size of tensor parallelism in experts are not fields any more.
  void parallelism() {
    out_.line("        parallelism=ParallelismConfig(");
    for (const auto& [key, value] : job_.parallelism) {
      if (key == "enable_async_tensor_parallel") continue;
      if (key == "context_parallel_rotate_method") {
        if (value.text != "allgather") out_.lose("parallelism.cp_method", "how keys travel is the model's matter");
        continue;
      }
      if (key == "expert_tensor_parallel_degree") {
        if (value.number > 1) out_.lose("parallelism.etp", "experts take ranks from tensor parallelism, and are whole");
        continue;
      }
      if (key == "expert_parallel_comm_backend") continue;  // which the model has
      const std::string name = key == "module_fqns_per_model_part" ? "pipeline_parallel_" + key : key;
      out_.line("            " + name + "=" + literal(value) + ",");
    }
    if (pipelined())
      out_.line(fmt::format("            num_pp_microbatches={},", job_.global_batch / (job_.replicas * job_.micro_batch)));
    out_.line("        ),");
  }

  static std::string literal(const TitanValue& value) {
    if (value.kind == TitanValue::Kind::number) return std::to_string(value.number);
    if (value.kind == TitanValue::Kind::truth) return value.number != 0 ? "True" : "False";
    return value.kind == TitanValue::Kind::text ? "\"" + value.text + "\"" : modules_literal(value, "lm_head");
  }

  void checkpointing() {
    using enum TitanCheckpointing::Mode;
    const auto mode = job_.checkpointing.mode;
    if (mode == full) out_.line("        activation_checkpoint=FullAC.Config(),");
    if (mode == operation) out_.line("        activation_checkpoint=SelectiveAC.Config(),");
    if (mode == none) out_.line("        activation_checkpoint=None,");
    if (mode != every) return;
    out_.line("        activation_checkpoint=None,");
    for (const char* field : {"training.recompute", "training.recompute_every"})
      out_.lose(field, "it recomputes all layers, or operations by a policy of its own");
  }
};

}  // namespace

/// Writes a function for a config_registry.py of TorchTitan, as the one of Llama 3 has them (commit b5bcd76).
Exported torchtitan_recipe(const ScenarioWithDocument& read) { return RecipeWriter(torchtitan_job(read.scenario)).all(); }

}  // namespace tandem::scenarios
