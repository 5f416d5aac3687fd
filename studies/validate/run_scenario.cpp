#include "studies/validate/run_scenario.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <utility>

#include "runtime/base/divide_up.h"
#include "runtime/base/nearest.h"
#include "scenarios/reading/document.h"
#include "scenarios/reading/overlay.h"
#include "scenarios/reading/preset_specs.h"
#include "scenarios/reading/presets.h"
#include "scenarios/schedules/schedule_table.h"

namespace tandem::studies {
namespace {

/// Columns whose text is the value of a field.
struct Field {
  std::string_view column;
  std::string_view path;
};

constexpr Field sizes[] = {
    {"n_gpus", "cluster.gpus"},
    {"gpus_per_node", "cluster.gpus_per_node"},
    {"nvlink_GBps", "cluster.nvlink_GBps"},
    {"nics_per_node", "cluster.nics_per_node"},
    {"nic_gbps", "cluster.nic_gbps"},
    {name_of(Axis::tp), "parallelism.tp"},
    {name_of(Axis::pp), "parallelism.pp"},
    {name_of(Axis::cp), "parallelism.cp"},
    {name_of(Axis::ep), "parallelism.ep"},
    {name_of(Axis::dp), "parallelism.dp"},
    {"zero", "parallelism.zero"},
    {"sequence", "training.sequence"},
    {"micro_batch", "training.micro_batch"},
    {"global_batch", "training.global_batch"},
};

constexpr Field names[] = {
    {"cuda_graph", "training.cuda_graph"},
    {"cp_method", "parallelism.cp_method"},
};

constexpr Field flags[] = {
    {"sp", "parallelism.sp"},
    {"overlap_dp", "training.overlap.dp"},
    {"overlap_pp", "training.overlap.pp"},
    {"overlap_ep", "training.overlap.ep"},
    {"fp8_dpa", "training.fp8_attention"},
    {"fp8_output_proj", "training.fp8_output_proj"},
};

constexpr Field shape[] = {
    {"layers", "model.layers"},     {"hidden", "model.hidden"}, {"heads", "model.heads"},
    {"kv_heads", "model.kv_heads"}, {"ffn", "model.ffn"},       {"vocab", "model.vocab"},
};

/// What a module of `recompute` is called where measurements are published, and here.
constexpr std::string_view modules[][2] = {
    {"norm", "norm"},
    {"layernorm", "norm"},
    {"act", "activation"},
    {"activation", "activation"},
    {"moe_act", "activation"},
    {"attn", "attention"},
    {"attention", "attention"},
    {"core_attn", "attention"},
    {"mlp", "mlp"},
    {"mla_up", "mla-up"},
    {"mla-up", "mla-up"},
    {"mla_up_proj", "mla-up"},
};

constexpr std::int64_t most_gpus_of_a_host = 8;

/// 0 where no whole number stands there.
std::int64_t size_at(const YamlNode& document, std::string_view path) {
  const YamlNode* node = find_path(document, path);
  std::int64_t size = 0;
  if (node != nullptr) std::from_chars(node->text.data(), node->text.data() + node->text.size(), size);
  return size;
}

/// The preset that a cell names. A file counts from the table's folder and is named by its absolute path, so that the scenario
/// can be simulated from anywhere.
YamlNode preset_at(const RunRow& row, std::string_view column) {
  const Place& place = row.place(column);
  const std::string& text = row.text(column);
  if (!is_preset_file(text)) return make_scalar(row.name(column), place);
  const std::filesystem::path folder = std::filesystem::path(place.file).parent_path();
  return make_scalar(std::filesystem::absolute(folder / text).lexically_normal().string(), place);
}

/// Lays one run's cells over an empty scenario.
class ScenarioBuilder {
 public:
  explicit ScenarioBuilder(const RunRow& row) : row_(row), document_(make_node(YamlNode::Kind::mapping, row.place())) {}

  RunScenario build() {
    put_cluster();
    put_model();
    for (const Field& field : sizes) put_text(field, row_.text(field.column));
    for (const Field& field : names) put_text(field, row_.name(field.column));
    put_precision();
    for (const Field& field : flags) put_flag(field);
    put_parallelism();
    put_training();
    fit_model_to_run();
    result_.scenario = read_document(resolved(), row_.text("id"));
    if (row_.name("attention") == "flash" &&
        result_.scenario.cluster.gpu.efficiency.attention_kernel == AttentionKernel::unfused) {
      put("training.attention", "attention", "flash-2");
      result_.scenario = read_document(resolved(), row_.text("id"));
    }
    result_.yaml = to_yaml(document_);
    return std::move(result_);
  }

 private:
  void put(const std::string& path, std::string_view column, std::string value) {
    put_node(path, column, make_scalar(std::move(value), row_.place(column)));
  }

  void put_node(const std::string& path, std::string_view column, YamlNode value) {
    apply_override(document_, Assignment{path, row_.place(column), std::move(value)});
  }

  void put_text(const Field& field, const std::string& text) {
    if (!text.empty()) put(std::string(field.path), field.column, text);
  }

  void put_flag(const Field& field) {
    if (const auto flag = row_.flag(field.column)) put(std::string(field.path), field.column, *flag ? "true" : "false");
  }

  /// What is published as a precision may name the recipe alone: nvfp4 is one of fp4.
  void put_precision() {
    const std::string name = row_.name("precision");
    put_gradients(name);
    put_text({"precision", "training.precision"}, name == name_of(Recipe::nvfp4) ? std::string(name_of(DType::f4)) : name);
    put_text({"fp8_recipe", "training.recipe"}, row_.name("fp8_recipe"));
    for (const char* gather : {"fp8_param_gather", "fp4_param_gather"}) {
      const std::int64_t zero = row_.integer("zero").value_or(1);
      if (!row_.flag(gather).value_or(false)) continue;
      if (zero == 1 || zero == 2)
        put_flag({gather, std::string("training.").append(gather)});
      else
        note(std::string(gather) + " 1 is not simulated with zero " + std::to_string(zero));
    }
    const bool at_ends = row_.has("bf16_layers_at_start") || row_.has("bf16_layers_at_end");
    if (!row_.flag("first_last_bf16").value_or(at_ends)) return;
    put("training.first_last_layers_bf16", at_ends ? "bf16_layers_at_end" : "first_last_bf16", "true");
    put_text({"bf16_layers_at_start", "training.num_layers_at_start_in_bf16"}, row_.text("bf16_layers_at_start"));
    put_text({"bf16_layers_at_end", "training.num_layers_at_end_in_bf16"}, row_.text("bf16_layers_at_end"));
  }

  void put_gradients(const std::string& precision) {
    if (row_.has("grad_dtype")) return put("training.grad_dtype", "grad_dtype", row_.name("grad_dtype"));
    const bool is_low = precision.starts_with("fp8") || precision.starts_with("fp4") || precision == name_of(Recipe::nvfp4);
    const std::string& usual = runs_of_framework(row_).low_precision_grad_dtype;
    if (is_low && !usual.empty()) put("training.grad_dtype", "framework", usual);
  }

  void note(std::string sentence) { result_.notes.push_back(std::move(sentence)); }

  void put_cluster() {
    if (!row_.has("gpu"))
      throw InputError(row_.place("gpu"),
                       "the GPU is blank, expected one of the presets: " + joined(preset_names(PresetKind::gpu)));
    const YamlNode gpu = preset_at(row_, "gpu");
    const YamlNode pod = pod_of_gpu(gpu, "");
    is_on_racks_ = size_at(preset_fields(PresetKind::cluster, pod, ""), "gpus_per_node") > most_gpus_of_a_host;
    put_node("cluster.preset", "gpu", pod);
    put_node("cluster.gpu", "gpu", gpu);
  }

  void put_model() {
    if (row_.has("preset"))
      put_node("model.preset", "preset", preset_at(row_, "preset"));
    else
      put_shape();
    put_text({"capacity_factor", "model.moe.capacity_factor"}, row_.text("capacity_factor"));
    put_text({"mtp_depth", "model.mtp_depth"}, row_.text("mtp_depth"));
  }

  void put_shape() {
    put("model.name", "model", row_.has("model") ? row_.text("model") : row_.text("id"));
    for (const Field& field : shape) put_text(field, row_.text(field.column));
    const bool gated = is_gated();
    put("model.gated", "gated", gated ? "true" : "false");
    put("model.norm", "gated", gated ? "rms" : "layer");
    put("model.rotary", "gated", gated ? "true" : "false");
    put("model.tied_embeddings", "gated", gated ? "false" : "true");
    if (!gated) put_text({"sequence", "model.max_positions"}, row_.text("sequence"));
    if (row_.integer("experts").value_or(0) == 0) return;
    for (const Field& field :
         {Field{"experts", "model.moe.experts"}, Field{"top_k", "model.moe.top_k"}, Field{"moe_ffn", "model.moe.ffn"}})
      put_text(field, row_.text(field.column));
  }

  bool is_gated() {
    if (const auto gated = row_.flag("gated")) return *gated;
    const std::int64_t hidden = row_.integer("hidden").value_or(0), ffn = row_.integer("ffn").value_or(0);
    note(std::string("gated is blank, taken for ") + (ffn == 4 * hidden ? "0, as ffn is four times hidden" : "1"));
    return ffn != 4 * hidden;
  }

  void put_parallelism() {
    if (row_.integer("hsdp").value_or(0) > 1) put_text({"hsdp", "parallelism.hsdp"}, row_.text("hsdp"));
    if (row_.has("etp"))
      put("parallelism.etp", "etp", row_.text("etp"));
    else if (row_.has(name_of(Axis::tp)) && row_.integer(name_of(Axis::ep)).value_or(1) > 1 &&
             runs_of_framework(row_).experts_split_like_tp)
      put("parallelism.etp", "etp", row_.text(name_of(Axis::tp)));
    if (row_.integer(name_of(Axis::ep)).value_or(1) > 1) put_dispatcher();
    if (row_.integer(name_of(Axis::tp)).value_or(1) == 1) return;
    if (row_.flag("sp").value_or(true) || !row_.flag("overlap_tp").value_or(false))
      put_flag({"overlap_tp", "training.overlap.tp"});
    else
      note("overlap_tp 1 is not simulated: without sequence parallelism there is nothing to split");
  }

  void put_dispatcher() {
    if (row_.has("dispatcher")) return put("parallelism.dispatcher", "dispatcher", row_.name("dispatcher"));
    const std::string& usual = runs_of_framework(row_).rack_dispatcher;
    if (is_on_racks_ && !usual.empty()) put("parallelism.dispatcher", "framework", usual);
  }

  void put_training() {
    if (row_.has("framework")) put_node("training.framework", "framework", preset_at(row_, "framework"));
    if (row_.integer(name_of(Axis::pp)).value_or(1) > 1) put_schedule();
    if (!row_.flag("compiled").value_or(false) || runs_of_framework(row_).compiles)
      put_flag({"compiled", "training.compiled"});
    else
      note("compiled 1 is not simulated: nothing is known of " + row_.name("framework") + " under torch.compile");
    put_cross_entropy();
    put_recompute();
    put_attention();
  }

  void put_cross_entropy() {
    const std::string kind = row_.name("cross_entropy");
    if (kind == "fused") return put("training.cross_entropy_fusion", "cross_entropy", "true");
    if (!kind.empty() && kind != "unfused")
      throw InputError(row_.place("cross_entropy"), "cross_entropy is " + excerpt(kind) + ", expected fused or unfused");
  }

  void put_schedule() {
    put_text({"vpp", "parallelism.vpp"}, row_.text("vpp"));
    put_text({"pipeline_layout", "parallelism.pipeline_layout"}, row_.text("pipeline_layout"));
    if (row_.has("schedule"))
      put("training.schedule", "schedule", row_.name("schedule"));
    else if (row_.integer("vpp").value_or(1) > 1)
      put("training.schedule", "vpp", std::string(name_of(ScheduleKind::interleaved)));
  }

  void put_recompute() {
    const std::string kind = row_.name("recompute");
    if (kind.empty()) return;
    if (kind == "selective") return put("training.recompute", "recompute", runs_of_framework(row_).selective);
    if (kind == "full") put_text({"recompute_every", "training.recompute_every"}, row_.text("recompute_every"));
    if (kind == "none" || kind == "full") return put("training.recompute", "recompute", kind);
    YamlNode list = make_node(YamlNode::Kind::sequence, row_.place("recompute"));
    for (std::size_t start = 0; start <= kind.size();) {
      const std::size_t plus = std::min(kind.find('+', start), kind.size());
      const std::string word = kind.substr(start, plus - start);
      const auto* known = std::ranges::find(modules, word, [](const auto& entry) { return entry[0]; });
      list.items.push_back(make_scalar(known == std::end(modules) ? word : std::string((*known)[1]), list.place));
      start = plus + 1;
    }
    put_node("training.recompute", "recompute", std::move(list));
  }

  /// Which of the fused kernels is the framework's to say.
  void put_attention() {
    const std::string kind = row_.name("attention");
    if (kind == "unfused") return put("training.attention", "attention", "unfused");
    if (!kind.empty() && kind != "flash")
      throw InputError(row_.place("attention"), "attention is " + excerpt(kind) + ", expected flash or unfused");
  }

  YamlNode resolved() const {
    YamlNode complete = document_;
    tidy_names(complete);
    resolve_presets(complete, "");
    return complete;
  }

  /// A part of a node is a small node; and what frameworks do by themselves when sizes do not divide.
  void fit_model_to_run() {
    const YamlNode complete = resolved();
    const std::int64_t gpus = row_.integer("n_gpus").value_or(0);
    if (gpus > 0 && gpus < size_at(complete, "cluster.gpus_per_node"))
      put("cluster.gpus_per_node", "n_gpus", row_.text("n_gpus"));
    pad_vocabulary(size_at(complete, "model.vocab"));
    split_layers(size_at(complete, "model.layers"), size_at(complete, "model.mtp_depth"));
    const std::int64_t positions = size_at(complete, "model.max_positions"), sequence = size_at(complete, "training.sequence");
    if (positions > 0 && positions < sequence) {
      put("model.max_positions", "sequence", std::to_string(sequence));
      note("the model's " + std::to_string(positions) + " learned positions are made " + std::to_string(sequence));
    }
  }

  void pad_vocabulary(std::int64_t vocab) {
    const std::int64_t tp = row_.integer(name_of(Axis::tp)).value_or(1);
    if (vocab % tp == 0) return;
    constexpr std::int64_t megatron_multiple = 128;
    const std::int64_t unit = megatron_multiple * tp, padded = round_up(vocab, unit);
    put("model.vocab", "vocab", std::to_string(padded));
    note("the vocabulary of " + std::to_string(vocab) + " is padded to " + std::to_string(padded));
  }

  void split_layers(std::int64_t layers, std::int64_t mtp) {
    const std::int64_t pp = row_.integer(name_of(Axis::pp)).value_or(1), vpp = row_.integer("vpp").value_or(1), chunks = pp * vpp;
    if (layers == 0 || layers % chunks == 0 || !row_.text("pipeline_layout").empty()) return;
    const bool with_loss = (layers + 1) % chunks == 0, with_both = (layers + 2) % chunks == 0;
    if (with_loss || with_both) {
      put("parallelism.account_for_loss", name_of(Axis::pp), "true");
      if (!with_loss) put("parallelism.account_for_embedding", name_of(Axis::pp), "true");
      note(std::string(with_loss ? "the loss takes" : "embedding and loss take") + " a layer's place in the split of " +
           std::to_string(layers) + " layers");
      return;
    }
    const std::int64_t each = divide_up(layers, chunks) * vpp, last = layers - (pp - 1) * each;
    if (vpp > 1 && (last <= 0 || last % vpp != 0)) return lighten_last_chunks(layers, chunks, mtp);
    if (last <= 0) return;  // the scenario refuses it, with its reason
    put("parallelism.last_stage_layers", name_of(Axis::pp), std::to_string(last));
    note("the last of " + std::to_string(pp) + " stages has " + std::to_string(last) + " of " + std::to_string(layers) +
         " layers");
  }

  /// As Megatron-Bridge's recipes of DeepSeek-V3 lay it out (set_deepseek_v3_pipeline_model_parallel_layout) or, where that would
  /// leave less than nothing to the last chunk, NeMo AutoModel (generate_hf_model_fqn_per_model_part).
  void lighten_last_chunks(std::int64_t layers, std::int64_t chunks, std::int64_t mtp) {
    const std::int64_t each = divide_up(layers, chunks), last = layers - (chunks - 1) * each;
    PipelineLayout layout;
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      const bool fewer = last >= 0 ? chunk + 1 == chunks : chunk >= layers % chunks;
      layout.emplace_back(static_cast<std::size_t>(!fewer ? each : last >= 0 ? last : each - 1), layout_part::layer);
    }
    layout.front().insert(layout.front().begin(), layout_part::embedding);
    layout.back() += std::string(static_cast<std::size_t>(mtp), layout_part::mtp) + layout_part::loss;
    put("parallelism.pipeline_layout", "vpp", layout_text(layout));
    note("the " + std::to_string(layers) + " layers are laid on " + std::to_string(chunks) + " model chunks as " +
         layout_text(layout));
  }

  const RunRow& row_;
  YamlNode document_;
  RunScenario result_;
  bool is_on_racks_ = false;
};

}  // namespace

FrameworkRuns runs_of_framework(const RunRow& row) { return framework_runs(preset_at(row, "framework"), ""); }

RunScenario scenario_of(const RunRow& row) { return ScenarioBuilder(row).build(); }

std::int64_t layers_of(const RunRow& row) {
  if (!row.has("preset")) return row.integer("layers").value_or(0);
  YamlNode document = make_node(YamlNode::Kind::mapping, row.place());
  apply_override(document, Assignment{"model.preset", row.place("preset"), preset_at(row, "preset")});
  resolve_presets(document, "");
  return size_at(document, "model.layers");
}

bool has_experts(const RunRow& row) {
  if (const std::optional<std::int64_t> experts = row.integer("experts")) return *experts > 0;
  const std::vector<std::string> presets = scenarios::preset_names(scenarios::PresetKind::model);
  const std::string preset = row.name("preset");
  return std::ranges::find(presets, preset) != presets.end() && scenarios::model_preset(preset).moe.experts > 0;
}

}  // namespace tandem::studies
