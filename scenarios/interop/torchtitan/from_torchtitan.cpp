#include <algorithm>
#include <array>

#include "runtime/base/divide_up.h"
#include "runtime/base/lower_case.h"
#include "runtime/base/nearest.h"
#include "scenarios/interop/torchtitan/torchtitan_configuration.h"
#include "scenarios/interop/torchtitan/torchtitan_models.h"
#include "scenarios/reading/preset_specs.h"
#include "scenarios/reading/yaml_mapping.h"
#include "scenarios/schedules/schedule_table.h"
#include "scenarios/spec/names.h"

namespace tandem::scenarios {
namespace {

/// What a field of 0.2 was called before and after.
struct TitanName {
  const char *path, *other;
};
constexpr std::array titan_names{
    TitanName{"model.name", "model_spec.name"},
    TitanName{"model.flavor", "model_spec.flavor"},
    TitanName{"model.converters", "model_converters.converters"},
    TitanName{"training.local_batch_size", "training.batch_size"},
    TitanName{"training.seq_len", "training.max_context_length"},
    TitanName{"parallelism.data_parallel_replicate_degree", "training.data_parallel_replicate_degree"},
    TitanName{"parallelism.data_parallel_shard_degree", "training.data_parallel_shard_degree"},
    TitanName{"parallelism.data_parallel_shard_degree", "training.data_parallel_degree"},
    TitanName{"parallelism.tensor_parallel_degree", "training.tensor_parallel_degree"},
    TitanName{"parallelism.pipeline_parallel_degree", "experimental.pipeline_parallel_degree"},
    TitanName{"parallelism.context_parallel_degree", "experimental.context_parallel_degree"},
    TitanName{"parallelism.context_parallel_rotate_method", "experimental.context_parallel_rotate_method"},
    TitanName{"parallelism.pipeline_parallel_schedule", "experimental.pipeline_parallel_schedule"},
    TitanName{"parallelism.pipeline_parallel_split_points", "experimental.pipeline_parallel_split_points"},
    TitanName{"parallelism.enable_async_tensor_parallel", "experimental.enable_async_tensor_parallel"},
    TitanName{"parallelism.enable_async_tensor_parallel", "compile.enable_async_tensor_parallel"},
    TitanName{"parallelism.fsdp_reshard_after_forward", "training.fsdp_reshard_after_forward"},
    TitanName{"parallelism.module_fqns_per_model_part", "parallelism.pipeline_parallel_module_fqns_per_model_part"},
    TitanName{"parallelism.expert_parallel_comm_backend", "model.moe_comm_backend"},
    TitanName{"compile.enable", "training.compile"},
};

/// Defaults are those of torchtitan/config/job_config.py, 0.2, and of torchtitan/config/*.py, 0.3 and later, where they differ.
class TorchTitanReader {
 public:
  TorchTitanReader(const ForeignText& from, YamlNode root, TitanForm form)
      : tree_(std::move(root), from.file),
        file_(from.file),
        gpus_(from.gpus),
        form_(form),
        document_(make_node(YamlNode::Kind::mapping, {.file = from.file})) {
    for (const auto& [path, other] : titan_names) tree_.also_called(path, other);
  }

  Imported all() {
    if (tree_.has("job.description")) put(document_, "name", tree_.text("job.description", ""), tree_.place("job.description"));
    for (const char* name : {"model", "parallelism", "training"}) section(name);  // none comes later, so that references stay
    model();
    mesh();
    data_parallel();
    if (pp_ > 1) pipeline();
    training();
    recompute();
    if (document_.find("model")->entries.empty()) document_.erase("model");
    pass_over_rest();
    Imported imported{.document = std::move(document_), .ignored = tree_.unknown()};
    imported.notes = std::move(notes_);
    imported.assumed = std::move(assumed_);
    imported.missing = std::move(missing_);
    return imported;
  }

 private:
  ForeignTree tree_;
  std::string file_;
  std::int64_t gpus_;
  TitanForm form_;
  YamlNode document_;
  std::vector<std::string> notes_, assumed_;
  std::vector<Missing> missing_;
  std::int64_t layers_ = 0, mtp_ = 0, tp_ = 1, pp_ = 1, cp_ = 1, replicas_ = 0;

  YamlNode& section(const char* name) { return section_of(document_, name, {.file = file_}); }
  YamlNode& overlap() { return section_of(section("training"), "overlap", {.file = file_}); }
  std::int64_t degree(const std::string& name) { return tree_.positive("parallelism." + name, 1); }
  void note(const std::string& path, const std::string& sentence) { notes_.push_back(placed(tree_.place(path), sentence)); }

  void model() {
    if (!tree_.has("model.name") && !tree_.has("model.flavor"))
      return need_model("says nothing of the model, expected --set model=NAME");
    const std::string name = tree_.text("model.name", "llama3"), flavor = tree_.text("model.flavor", "debugmodel");
    const TorchTitanModel* found = torchtitan_model(name, flavor);
    if (found == nullptr) {
      std::string known;
      for (const TorchTitanModel& model : torchtitan_models())
        known += (known.empty() ? "" : ", ") + std::string(model.name) + " " + std::string(model.flavor);
      return need_model("the shape of " + name + " " + flavor + " is not known here, expected one of " + known +
                        "; or --set model=NAME, a preset or a file");
    }
    const Place place = tree_.place("model.flavor");
    if (!found->is_preset()) {
      YamlNode fields = parse_yaml(std::string(found->model), file_);
      layers_ = std::stoll(fields.find("layers")->text);
      put(document_, "model", std::move(fields));
      return;
    }
    put(section("model"), "preset", found->model, place);
    const ModelSpec preset = model_preset(std::string(found->model));
    layers_ = preset.layers;
    mtp_ = preset.mtp_depth;
  }

  void need_model(const std::string& sentence) {
    const char* path = tree_.has("model.flavor") ? "model.flavor" : "model.name";
    missing_.push_back({.field = "model", .place = tree_.place(path), .sentence = sentence});
  }

  void mesh() {
    YamlNode& node = section("parallelism");
    tp_ = degree("tensor_parallel_degree");
    pp_ = degree("pipeline_parallel_degree");
    cp_ = degree("context_parallel_degree");
    const std::string sequence = "parallelism.enable_sequence_parallel";
    const std::string own = tree_.has(sequence) ? sequence : "parallelism.tensor_parallel_degree";
    put(node, name_of(Axis::tp), tp_, tree_.place("parallelism.tensor_parallel_degree"));
    put(node, "sp", tp_ > 1 && tree_.boolean(sequence, true), tree_.place(own));
    put(node, name_of(Axis::pp), pp_, tree_.place("parallelism.pipeline_parallel_degree"));
    put(node, name_of(Axis::cp), cp_, tree_.place("parallelism.context_parallel_degree"));
    const std::string rotation = "parallelism.context_parallel_rotate_method";
    const std::string method = tree_.text(rotation, "allgather");
    if (cp_ > 1)
      put(node, "cp_method", name_in(cp_method_names, method == "alltoall" ? CpMethod::ring : CpMethod::all_gather),
          tree_.place(rotation));
    const std::string async = "parallelism.enable_async_tensor_parallel";
    put(overlap(), name_of(Axis::tp), tree_.boolean(async, false), tree_.place(async));
    experts(node);
  }

  void experts(YamlNode& node) {
    const std::string size = "parallelism.expert_parallel_degree", inner = "parallelism.expert_tensor_parallel_degree";
    const std::string backend = "parallelism.expert_parallel_comm_backend", name = tree_.text(backend, "standard");
    const bool exchanges = tree_.has(size) && degree("expert_parallel_degree") > 1;
    if (exchanges) {
      put(node, name_of(Axis::ep), degree("expert_parallel_degree"), tree_.place(size));
      put(node, "dispatcher", name == "standard" ? std::string(name_in(dispatcher_names, Dispatcher::nccl)) : name,
          tree_.place(backend));
    }
    if (exchanges || (tree_.has(inner) && degree("expert_tensor_parallel_degree") > 1))
      put(node, "etp", degree("expert_tensor_parallel_degree"), tree_.place(inner));
  }

  void data_parallel() {
    YamlNode& node = section("parallelism");
    const std::string shard_path = "parallelism.data_parallel_shard_degree";
    const std::int64_t copies = degree("data_parallel_replicate_degree");
    std::int64_t shards = tree_.integer(shard_path, -1);
    if (shards == -1 && gpus_ > 0) shards = std::max<std::int64_t>(1, gpus_ / (tp_ * pp_ * cp_) / copies);
    if (shards == -1)
      throw InputError(tree_.place(shard_path),
                       tree_.spelled(shard_path) + " is what remains, -1, expected the number of GPUs beside it (--gpus)");
    if (shards < 1)
      throw InputError(tree_.place(shard_path),
                       "data_parallel_shard_degree is " + std::to_string(shards) + ", expected -1, or 1 or more");
    replicas_ = copies * shards;
    put(node, name_of(Axis::dp), replicas_, tree_.place(shard_path));
    const bool sharded = shards * cp_ > 1;
    const std::string path = "parallelism.fsdp_reshard_after_forward";
    tree_.has(path);
    put(node, "zero", static_cast<std::int64_t>(sharded ? 3 : 0), tree_.place(shard_path));
    if (!sharded) return;
    if (copies > 1) put(node, "hsdp", shards * cp_, tree_.place("parallelism.data_parallel_replicate_degree"));
    const std::string policy = tree_.text(path, "default");
    if (policy == "always") {
      put(node, "reshard_after_forward", true, tree_.place(path));
    } else if (policy == "never") {
      put(node, "reshard_after_forward", false, tree_.place(path));
      put(node, "gather_per_micro_batch", pp_ == 1, tree_.place(path));
    } else if (policy != "default") {
      throw InputError(tree_.place(path),
                       "fsdp_reshard_after_forward is " + excerpt(policy) + ", expected default, always or never");
    }
  }

  void pipeline() {
    const std::string path = "parallelism.pipeline_parallel_schedule";
    const std::string name = tree_.text(path, "1F1B");
    const ScheduleTraits* found = nullptr;
    for (const ScheduleTraits& traits : schedule_table())
      if (!traits.torchtitan.empty() && lower_case(std::string(traits.torchtitan)) == lower_case(name)) found = &traits;
    if (found == nullptr)
      throw InputError(tree_.place(path), "the schedule " + excerpt(name) +
                                              " is not lowered, expected one of: " + joined(schedules_of_torchtitan()));
    put(section("training"), "schedule", found->name, tree_.place(path));
    if (tree_.has(modules_path)) return modules();
    if (tree_.has(points_path) && !split_points().empty()) return split();
    stages(found->least_chunks);  // unless layers per stage are stated
  }

  static constexpr const char* modules_path = "parallelism.module_fqns_per_model_part";
  static constexpr const char* points_path = "parallelism.pipeline_parallel_split_points";

  void modules() {
    const YamlNode& lists = *tree_.find(modules_path);
    const Place place = tree_.place(modules_path);
    const auto is_list = [](const YamlNode& node) { return node.kind == YamlNode::Kind::sequence; };
    PipelineLayout layout;
    if (!is_list(lists) || !std::ranges::all_of(lists.items, is_list))
      throw InputError(place, tree_.spelled(modules_path) + " is no list of lists of texts, expected one");
    for (const YamlNode& stage : lists.items) {
      std::string& parts = layout.emplace_back();
      for (const YamlNode& part : stage.items) {
        if (part.kind != YamlNode::Kind::scalar || !part.quoted)
          throw InputError(place, tree_.spelled(modules_path) + " is no list of lists of texts, expected one");
        if (part.text == "tok_embeddings") parts += layout_part::embedding;
        if (part.text.starts_with("layers.")) parts += layout_part::layer;
        if (part.text == "output" || part.text == "lm_head")
          parts += std::string(static_cast<std::size_t>(mtp_), layout_part::mtp) + layout_part::loss;
      }
    }
    put_layout(layout, place);
  }

  void put_layout(const PipelineLayout& layout, const Place& place) {
    YamlNode& node = section("parallelism");
    if (layout.empty() || static_cast<std::int64_t>(layout.size()) % pp_ != 0)
      throw InputError(place, "module_fqns_per_model_part has " + std::to_string(layout.size()) +
                                  " lists of modules, expected a multiple of pipeline_parallel_degree " + std::to_string(pp_));
    put(node, "vpp", static_cast<std::int64_t>(layout.size()) / pp_, place);
    put(node, "pipeline_layout", layout_text(layout), place);
  }

  /// Of 0.1: a list, or one text with commas.
  std::vector<std::string> split_points() {
    std::vector<std::string> points;
    for (const std::string& text : tree_.texts(points_path))
      for (std::size_t begin = 0; begin <= text.size() && !text.empty();) {
        const std::size_t comma = std::min(text.find(',', begin), text.size());
        points.push_back(text.substr(begin, comma - begin));
        begin = comma + 1;
      }
    return points;
  }

  /// Each point is the first module of a stage.
  void split() {
    const Place place = tree_.place(points_path);
    const std::vector<std::string> points = split_points();
    if (layers_ == 0) return stages(1);
    PipelineLayout layout{std::string(1, layout_part::embedding)};
    std::size_t next = 0;
    for (std::int64_t layer = 0; layer < layers_; ++layer) {
      if (next < points.size() && points[next] == "layers." + std::to_string(layer)) {
        layout.emplace_back();
        ++next;
      }
      layout.back() += layout_part::layer;
    }
    if (next < points.size())
      throw InputError(place, "there is no module " + excerpt(points[next]) +
                                  " to split at behind the ones before it, expected layers.0 "
                                  "to layers." +
                                  std::to_string(layers_ - 1));
    layout.back() += std::string(static_cast<std::size_t>(mtp_), layout_part::mtp) + layout_part::loss;
    put_layout(layout, place);
  }

  void stages(std::int64_t of_rank) {
    YamlNode& node = section("parallelism");
    const std::string prefix = "parallelism.pipeline_parallel_", per_path = prefix + "layers_per_stage";
    const std::string first_path = prefix + "first_stage_less_layers", last_path = prefix + "last_stage_less_layers";
    const std::int64_t less_first = tree_.integer(first_path, 1), less_last = tree_.integer(last_path, 1);
    const std::int64_t layers = layers_ + less_first + less_last;
    if (tree_.has(per_path) && layers_ > 0) {
      const std::int64_t per = std::max<std::int64_t>(1, tree_.integer(per_path, 1));
      of_rank = std::max<std::int64_t>(1, divide_up(divide_up(layers, per), pp_));
    }
    put(node, "vpp", of_rank, tree_.place(per_path));
    if (less_first < 2 && less_last < 2) {
      put(node, "account_for_embedding", less_first == 1, tree_.place(first_path));
      put(node, "account_for_loss", less_last == 1, tree_.place(last_path));
      return;
    }
    if (layers_ == 0) return;
    const std::int64_t each = layers / pp_;
    if (less_first != 0) put(node, "first_stage_layers", each - less_first, tree_.place(first_path));
    if (less_last != 0) put(node, "last_stage_layers", each - less_last, tree_.place(last_path));
  }

  void training() {
    YamlNode& node = section("training");
    const std::int64_t sequence = tree_.positive("training.seq_len", 2048);
    put(node, "sequence", sequence, tree_.place("training.seq_len"));
    const std::string tokens_path = "training.num_tokens_per_microbatch_per_dp_rank";
    if (tree_.has(tokens_path) || tree_.spelled("training.seq_len") == "training.max_context_length")
      batches_by_tokens(node, tokens_path, sequence);
    else
      batches(node);
    precision(node);
    put(overlap(), name_of(Axis::dp), true, {.file = file_});
    put(node, "framework", "torchtitan", {.file = file_});
    const std::vector<std::string> compiled = tree_.texts("compile.components");
    const bool of_model = compiled.empty() || std::ranges::find(compiled, "model") != compiled.end();
    if (tree_.boolean("compile.enable", false) && of_model) put(node, "compiled", true, tree_.place("compile.enable"));
    if (tree_.boolean("training.enable_cpu_offload", false))
      note("training.enable_cpu_offload",
           "training.enable_cpu_offload keeps weights, gradients and states on the host; here they stay on the GPUs");
    const std::string name = lower_case(tree_.text("optimizer.name", "AdamW"));
    if (name == "muon")
      put(node, "optimizer", "muon", tree_.place("optimizer.name"));
    else if (name.find("adam") == std::string::npos)
      note("optimizer.name", "the optimizer " + excerpt(name) + " is none that a scenario has; here it is Adam");
  }

  void batches(YamlNode& node) {
    const std::string local_path = "training.local_batch_size", global_path = "training.global_batch_size";
    const std::int64_t local = tree_.positive(local_path, 8);
    std::int64_t global = tree_.integer(global_path, -1);
    if (global == -1) global = local * replicas_;
    const std::string micro_path = pp_ > 1 ? "parallelism.pipeline_parallel_microbatch_size" : local_path;
    if (pp_ > 1 && global > local * replicas_)
      throw InputError(tree_.place(global_path),
                       "global_batch_size " + std::to_string(global) + " is more than the pipelines' " + std::to_string(local) +
                           " * " + std::to_string(replicas_) +
                           ", so that they would run several times in a step; expected a local_batch_size of " +
                           std::to_string(global / std::max<std::int64_t>(1, replicas_)));
    put(node, "micro_batch", pp_ > 1 ? tree_.positive(micro_path, 1) : local, tree_.place(micro_path));
    put(node, "global_batch", global, tree_.place(global_path));
  }

  /// Since 0.3 batches are counted in tokens, and pipelines in micro-batches.
  void batches_by_tokens(YamlNode& node, const std::string& tokens_path, std::int64_t sequence) {
    constexpr std::int64_t usual_tokens = 16384;
    const std::string step_path = "training.num_tokens_per_train_step", count_path = "parallelism.num_pp_microbatches";
    const auto sequences = [&](const std::string& path, std::int64_t tokens) {
      if (tokens % sequence == 0) return tokens / sequence;
      throw InputError(tree_.place(path), tree_.spelled(path) + " is " + std::to_string(tokens) +
                                              ", expected a multiple of the " + std::to_string(sequence) +
                                              " tokens of a sequence");
    };
    const std::int64_t micro_batch = sequences(tokens_path, tree_.positive(tokens_path, usual_tokens));
    const std::int64_t in_pipeline = pp_ > 1 ? tree_.positive(count_path, 1) : 1;
    tree_.find(count_path);
    const std::int64_t once = micro_batch * in_pipeline * replicas_, tokens = tree_.integer(step_path, -1);
    const std::int64_t global = tokens == -1 ? once : sequences(step_path, tokens);
    if (pp_ > 1 && global != once)
      throw InputError(tree_.place(step_path),
                       step_path + " is " + std::to_string(global) + " sequences and the pipelines take " + std::to_string(once) +
                           ", so that they would run several times in a step; expected " + "num_pp_microbatches " +
                           std::to_string(global / std::max<std::int64_t>(1, micro_batch * replicas_)));
    put(node, "micro_batch", micro_batch, tree_.place(tokens_path));
    put(node, "global_batch", global, tree_.place(tree_.has(step_path) ? step_path : tokens_path));
  }

  void precision(YamlNode& node) {
    const std::string path = "model.converters";
    const std::vector<std::string> converters = tree_.texts(path);
    const auto any = [&](std::string_view part) {
      return std::ranges::any_of(converters,
                                 [&](const std::string& name) { return lower_case(name).find(part) != std::string::npos; });
    };
    if (any("lora"))
      throw InputError(tree_.place(path),
                       "LoRA trains adapters beside frozen weights, which no scenario expresses; expected none");
    const bool fp4 = any("nvfp4"), mx = any("mx"), flagged = tree_.boolean("float8.enable_float8_linear", false);
    const bool fp8 = mx || any("float8") || any("fp8") || flagged;
    const std::string full_path = "training.mixed_precision_param";
    const bool full = tree_.text(full_path, "bfloat16") == "float32";
    const Place place = tree_.place(flagged ? "float8.enable_float8_linear" : fp8 || fp4 ? path : full_path);
    put(node, "precision", fp4 ? "fp4" : fp8 ? "fp8" : full ? "fp32" : "bf16", place);
    if (fp8 && !fp4) put(node, "recipe", name_of(mx ? Recipe::mxfp8 : Recipe::current), place);
    const std::string reduced = "training.mixed_precision_reduce", stored = "training.dtype";
    put(node, "grad_dtype", tree_.text(reduced, "float32") == "bfloat16" ? "bf16" : "fp32", tree_.place(reduced));
    if (tree_.text(stored, "float32") == "bfloat16")
      for (const char* state : {"moment_dtype", "second_moment_dtype", "master_dtype"})
        put(node, state, "bf16", tree_.place(stored));
    for (const char* section : {"model.", "model_converters."})
      if (const std::string partial = section + std::string(some_layers); tree_.boolean(partial, false))
        note(partial, "a converter takes some layers alone (fqns); here all layers have the type");
    for (const char* gathers : {"quantize.linear.float8.enable_fsdp_float8_all_gather", "float8.enable_fsdp_float8_all_gather"})
      if (fp8 && tree_.boolean(gathers, false))
        note(gathers, std::string(gathers) + " gathers weights in fp8; here FSDP gathers them in bfloat16");
  }

  void recompute() {
    YamlNode& node = section("training");
    const std::string mode_path = "activation_checkpoint.mode", option_path = "activation_checkpoint.selective_ac_option";
    const std::string mode = tree_.text(mode_path, "selective"), option = tree_.text(option_path, "2");
    if (mode == "none" || mode == "full") return put(node, "recompute", mode, tree_.place(mode_path));
    if (mode == "memory_budget")
      throw InputError(
          tree_.place(mode_path),
          "activation checkpointing follows a memory budget, which the compiler shares out; expected none, selective or full");
    if (mode != "selective")
      throw InputError(tree_.place(mode_path), "mode is " + excerpt(mode) + ", expected none, selective or full");
    if (option == "op") return put(node, "recompute", "selective-op", tree_.place(option_path));
    put(node, "recompute", "full", tree_.place(option_path));
    put(node, "recompute_every", option, tree_.place(option_path));
  }

  /// Logging, checkpoints, data, how steps are scheduled and lists of what is quantized.
  void pass_over_rest() {
    for (const char* section : {"profiling", "profiler", "metrics", "checkpoint", "comm", "validation", "validator",
                                "lr_scheduler", "experimental", "debug", "memory_estimation", "fault_tolerance", "tokenizer",
                                "dataloader", "quantize", "float8", "loss", "hf_assets_path", "dump_folder"})
      tree_.pass_over(section);
    if (form_ != TitanForm::toml) {
      tree_.pass_over("optimizer");
      tree_.pass_over("activation_checkpoint");
    }
    for (const char* field : {"job.dump_folder",
                              "job.print_args",
                              "job.print_config",
                              "model.tokenizer_path",
                              "model.hf_assets_path",
                              "model.norm_type",
                              "training.dataset",
                              "training.steps",
                              "training.max_norm",
                              "training.gc_freq",
                              "training.seed",
                              "training.warmup_steps",
                              "training.dataset_path",
                              "optimizer.eps",
                              "optimizer.beta1",
                              "optimizer.beta2",
                              "optimizer.weight_decay",
                              "optimizer.fused",
                              "optimizer.implementation",
                              "parallelism.enable_compiled_autograd",
                              "parallelism.pipeline_parallel_schedule",
                              "parallelism.context_parallel_load_balancer",
                              "parallelism.pp_num_unshard_lookahead_factor",
                              "compile.backend",
                              "compile.passes",
                              "activation_checkpoint.early_stop"})
      tree_.pass_over(field);
  }
};

}  // namespace

/// Reads a configuration of TorchTitan: the TOML of 0.1 and 0.2, what these and later ones save as JSON, or a function of 0.3's
/// config_registry.py, which --env CONFIG=NAME chooses. The model is known by its name and flavor.
Imported from_torchtitan(const ForeignText& from) {
  TitanForm form{};
  YamlNode root = parse_torchtitan(from, form);
  const auto has_section = [&](const char* name) { return root.find(name) != nullptr; };
  if (!has_section("training") && !has_section("parallelism") && !has_section("model"))
    throw InputError({.file = from.file},
                     "has none of `model`, `training` and `parallelism`, expected a configuration of TorchTitan");
  normalize_torchtitan(root, form, from.file);
  return TorchTitanReader(from, std::move(root), form).all();
}

}  // namespace tandem::scenarios
