#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "runtime/base/divide_up.h"
#include "runtime/base/lower_case.h"
#include "runtime/base/nearest.h"
#include "scenarios/interop/interop.h"
#include "scenarios/interop/torchtitan_models.h"
#include "scenarios/reading/preset_specs.h"
#include "scenarios/reading/yaml_mapping.h"
#include "scenarios/schedules/schedule_table.h"
#include "scenarios/spec/names.h"

namespace tandem::scenarios {
namespace {

/// Values of a TOML file by path, each with its place. What was asked for is known.
class TomlFile {
 public:
  TomlFile(const std::string& text, const std::string& file) : file_(file) {
    try {
      table_ = toml::parse(text, file);
    } catch (const toml::parse_error& error) {
      throw InputError(place_at(error.source()), "not TOML: " + std::string(error.description()));
    }
    collect(table_, "");
  }

  bool has(const std::string& path) { return find(path) != nullptr; }
  Place place(const std::string& path) {
    const toml::node* node = find(path);
    return node == nullptr ? Place{.file = file_} : place_at(node->source());
  }

  std::string text(const std::string& path, const std::string& fallback) {
    const toml::node* node = find(path);
    if (node == nullptr) return fallback;
    if (const auto value = node->value_exact<std::string>()) return *value;
    throw InputError(place(path), path + " is no text, expected one such as \"" + fallback + "\"");
  }
  std::int64_t integer(const std::string& path, std::int64_t fallback) {
    const toml::node* node = find(path);
    if (node == nullptr) return fallback;
    if (const auto value = node->value_exact<std::int64_t>()) return *value;
    throw InputError(place(path), path + " is no whole number, expected one");
  }
  bool boolean(const std::string& path, bool fallback) {
    const toml::node* node = find(path);
    if (node == nullptr) return fallback;
    if (const auto value = node->value_exact<bool>()) return *value;
    throw InputError(place(path), path + " is neither true nor false");
  }
  std::vector<std::string> texts(const std::string& path) {
    std::vector<std::string> list;
    const toml::node* node = find(path);
    if (node == nullptr || !node->is_array()) return list;
    for (const toml::node& item : *node->as_array())
      if (const auto value = item.value<std::string>()) list.push_back(*value);
    return list;
  }

  /// Throws InputError for anything but lists of texts.
  std::vector<std::vector<std::string>> lists_of_texts(const std::string& path) {
    const auto fail = [&] { return InputError(place(path), path + " is no list of lists of texts, expected one"); };
    const toml::node* node = find(path);
    if (node == nullptr || !node->is_array()) throw fail();
    std::vector<std::vector<std::string>> lists;
    for (const toml::node& list : *node->as_array()) {
      if (!list.is_array()) throw fail();
      lists.emplace_back();
      for (const toml::node& item : *list.as_array()) {
        const auto value = item.value_exact<std::string>();
        if (!value) throw fail();
        lists.back().push_back(*value);
      }
    }
    return lists;
  }

  std::vector<std::string> unknown() const {
    std::vector<std::string> paths;
    for (const std::string& path : paths_)
      if (!known_.contains(path)) paths.push_back(path);
    return paths;
  }

 private:
  std::string file_;
  toml::table table_;
  std::vector<std::string> paths_;
  std::set<std::string> known_;

  Place place_at(const toml::source_region& region) const {
    return {.file = file_, .line = static_cast<int>(region.begin.line), .column = static_cast<int>(region.begin.column)};
  }

  const toml::node* find(const std::string& path) {
    known_.insert(path);
    return table_.at_path(path).node();
  }

  void collect(const toml::table& table, const std::string& prefix) {
    for (const auto& [key, node] : table) {
      const std::string path = prefix + std::string(key.str());
      if (const toml::table* inner = node.as_table()) {
        collect(*inner, path + ".");
      } else {
        paths_.push_back(path);
      }
    }
  }
};

/// Defaults are those of torchtitan/config/job_config.py.
class TorchTitanReader {
 public:
  TorchTitanReader(const std::string& text, const std::string& file, std::int64_t gpus)
      : toml_(text, file), file_(file), gpus_(gpus), document_(make_node(YamlNode::Kind::mapping, {.file = file})) {}

  Imported all() {
    if (toml_.has("job.description")) put(document_, "name", toml_.text("job.description", ""), toml_.place("job.description"));
    for (const char* name : {"model", "parallelism", "training"}) section(name);  // none comes later, so that references stay
    model();
    mesh();
    data_parallel();
    if (pp_ > 1) pipeline();
    training();
    recompute();
    if (document_.find("model")->entries.empty()) document_.erase("model");
    return {.document = std::move(document_), .ignored = toml_.unknown()};
  }

 private:
  TomlFile toml_;
  std::string file_;
  std::int64_t gpus_;
  YamlNode document_;
  std::int64_t layers_ = 0, mtp_ = 0, tp_ = 1, pp_ = 1, cp_ = 1, replicas_ = 0;

  YamlNode& section(const char* name) { return section_of(document_, name, {.file = file_}); }
  YamlNode& overlap() { return section_of(section("training"), "overlap", {.file = file_}); }

  std::int64_t degree(const std::string& name) {
    const std::int64_t value = toml_.integer("parallelism." + name, 1);
    if (value < 1)
      throw InputError(toml_.place("parallelism." + name), name + " is " + std::to_string(value) + ", expected 1 or more");
    return value;
  }

  void model() {
    if (!toml_.has("model.name") && !toml_.has("model.flavor")) return;
    const std::string name = toml_.text("model.name", "llama3"), flavor = toml_.text("model.flavor", "debugmodel");
    std::string known;
    for (const TorchTitanModel& model : torchtitan_models()) {
      known += (known.empty() ? "" : ", ") + std::string(model.name) + " " + std::string(model.flavor);
      if (model.name != name || model.flavor != flavor) continue;
      put(section("model"), "preset", model.preset, toml_.place("model.flavor"));
      const ModelSpec preset = model_preset(std::string(model.preset));
      layers_ = preset.layers;
      mtp_ = preset.mtp_depth;
      return;
    }
    throw InputError(toml_.place("model.flavor"), "the shape of " + name + " " + flavor + " is not known here, expected one of " +
                                                      known + "; or take the model out and give it by --set model=..");
  }

  void mesh() {
    YamlNode& node = section("parallelism");
    tp_ = degree("tensor_parallel_degree");
    pp_ = degree("pipeline_parallel_degree");
    cp_ = degree("context_parallel_degree");
    put(node, name_of(Axis::tp), tp_, toml_.place("parallelism.tensor_parallel_degree"));
    put(node, "sp", tp_ > 1, toml_.place("parallelism.tensor_parallel_degree"));
    put(node, name_of(Axis::pp), pp_, toml_.place("parallelism.pipeline_parallel_degree"));
    put(node, name_of(Axis::cp), cp_, toml_.place("parallelism.context_parallel_degree"));
    const std::string rotation = "parallelism.context_parallel_rotate_method";
    if (cp_ > 1)
      put(node, "cp_method",
          name_in(cp_method_names, toml_.text(rotation, "allgather") == "alltoall" ? CpMethod::ring : CpMethod::all_gather),
          toml_.place(rotation));
    put(overlap(), name_of(Axis::tp), toml_.boolean("parallelism.enable_async_tensor_parallel", false),
        toml_.place("parallelism.enable_async_tensor_parallel"));
    if (toml_.has("parallelism.expert_parallel_degree") && degree("expert_parallel_degree") > 1) {
      put(node, name_of(Axis::ep), degree("expert_parallel_degree"), toml_.place("parallelism.expert_parallel_degree"));
      put(node, "etp", degree("expert_tensor_parallel_degree"), toml_.place("parallelism.expert_tensor_parallel_degree"));
      const std::string backend = "parallelism.expert_parallel_comm_backend";
      put(node, "dispatcher",
          toml_.text(backend, "standard") == "standard" ? name_in(dispatcher_names, Dispatcher::nccl) : toml_.text(backend, ""),
          toml_.place(backend));
    } else if (toml_.has("parallelism.expert_tensor_parallel_degree") && degree("expert_tensor_parallel_degree") > 1) {
      put(node, "etp", degree("expert_tensor_parallel_degree"), toml_.place("parallelism.expert_tensor_parallel_degree"));
    }
  }

  void data_parallel() {
    YamlNode& node = section("parallelism");
    const std::string shard_path = "parallelism.data_parallel_shard_degree";
    const std::int64_t copies = degree("data_parallel_replicate_degree");
    std::int64_t shards = toml_.integer(shard_path, -1);
    if (shards == -1 && gpus_ > 0) shards = std::max<std::int64_t>(1, gpus_ / (tp_ * pp_ * cp_) / copies);
    if (shards == -1)
      throw InputError(toml_.place(shard_path),
                       "data_parallel_shard_degree is what remains, -1, expected the number of GPUs beside it");
    if (shards < 1)
      throw InputError(toml_.place(shard_path),
                       "data_parallel_shard_degree is " + std::to_string(shards) + ", expected -1, or 1 or more");
    replicas_ = copies * shards;
    put(node, name_of(Axis::dp), replicas_, toml_.place(shard_path));
    const bool sharded = shards * cp_ > 1;
    const std::string path = "parallelism.fsdp_reshard_after_forward";
    toml_.has(path);
    put(node, "zero", static_cast<std::int64_t>(sharded ? 3 : 0), toml_.place(shard_path));
    if (!sharded) return;
    if (copies > 1) put(node, "hsdp", shards * cp_, toml_.place("parallelism.data_parallel_replicate_degree"));
    const std::string policy = toml_.text(path, "default");
    if (policy == "always") {
      put(node, "reshard_after_forward", true, toml_.place(path));
    } else if (policy == "never") {
      put(node, "reshard_after_forward", false, toml_.place(path));
      put(node, "gather_per_micro_batch", pp_ == 1, toml_.place(path));
    } else if (policy != "default") {
      throw InputError(toml_.place(path),
                       "fsdp_reshard_after_forward is " + excerpt(policy) + ", expected default, always or never");
    }
  }

  void pipeline() {
    const std::string path = "parallelism.pipeline_parallel_schedule";
    const std::string name = toml_.text(path, "1F1B");
    const ScheduleTraits* found = nullptr;
    for (const ScheduleTraits& traits : schedule_table())
      if (!traits.torchtitan.empty() && lower_case(std::string(traits.torchtitan)) == lower_case(name)) found = &traits;
    if (found == nullptr)
      throw InputError(toml_.place(path), "the schedule " + excerpt(name) +
                                              " is not lowered, expected one of: " + joined(schedules_of_torchtitan()));
    put(section("training"), "schedule", found->name, toml_.place(path));
    if (toml_.has(modules_path)) return modules();
    stages(found->least_chunks);  // unless layers per stage are stated
  }

  void modules() {
    PipelineLayout layout;
    for (const std::vector<std::string>& stage : toml_.lists_of_texts(modules_path)) {
      std::string& parts = layout.emplace_back();
      for (const std::string& name : stage) {
        if (name == "tok_embeddings") parts += layout_part::embedding;
        if (name.starts_with("layers.")) parts += layout_part::layer;
        if (name == "output") parts += std::string(static_cast<std::size_t>(mtp_), layout_part::mtp) + layout_part::loss;
      }
    }
    YamlNode& node = section("parallelism");
    const Place place = toml_.place(modules_path);
    if (layout.empty() || static_cast<std::int64_t>(layout.size()) % pp_ != 0)
      throw InputError(place, "module_fqns_per_model_part has " + std::to_string(layout.size()) +
                                  " lists of modules, expected a multiple of pipeline_parallel_degree " + std::to_string(pp_));
    put(node, "vpp", static_cast<std::int64_t>(layout.size()) / pp_, place);
    put(node, "pipeline_layout", layout_text(layout), place);
  }

  static constexpr const char* modules_path = "parallelism.module_fqns_per_model_part";

  void stages(std::int64_t of_rank) {
    YamlNode& node = section("parallelism");
    const std::string prefix = "parallelism.pipeline_parallel_", per_path = prefix + "layers_per_stage";
    const std::string first_path = prefix + "first_stage_less_layers", last_path = prefix + "last_stage_less_layers";
    const std::int64_t less_first = toml_.integer(first_path, 1), less_last = toml_.integer(last_path, 1);
    const std::int64_t layers = layers_ + less_first + less_last;
    if (toml_.has(per_path) && layers_ > 0) {
      const std::int64_t per = std::max<std::int64_t>(1, toml_.integer(per_path, 1));
      of_rank = std::max<std::int64_t>(1, divide_up(divide_up(layers, per), pp_));
    }
    put(node, "vpp", of_rank, toml_.place(per_path));
    if (less_first < 2 && less_last < 2) {
      put(node, "account_for_embedding", less_first == 1, toml_.place(first_path));
      put(node, "account_for_loss", less_last == 1, toml_.place(last_path));
      return;
    }
    if (layers_ == 0) return;
    const std::int64_t each = layers / pp_;
    if (less_first != 0) put(node, "first_stage_layers", each - less_first, toml_.place(first_path));
    if (less_last != 0) put(node, "last_stage_layers", each - less_last, toml_.place(last_path));
  }

  void training() {
    YamlNode& node = section("training");
    put(node, "sequence", toml_.integer("training.seq_len", 2048), toml_.place("training.seq_len"));
    const std::string local_path = "training.local_batch_size", global_path = "training.global_batch_size";
    const std::int64_t local = toml_.integer(local_path, 8);
    std::int64_t global = toml_.integer(global_path, -1);
    if (global == -1) global = local * replicas_;
    const std::string micro_path = pp_ > 1 ? "parallelism.pipeline_parallel_microbatch_size" : local_path;
    if (pp_ > 1 && global > local * replicas_)
      throw InputError(toml_.place(global_path),
                       "global_batch_size " + std::to_string(global) + " is more than the pipelines' " + std::to_string(local) +
                           " * " + std::to_string(replicas_) +
                           ", so that they would run several times in a step; expected a local_batch_size of " +
                           std::to_string(global / std::max<std::int64_t>(1, replicas_)));
    put(node, "micro_batch", pp_ > 1 ? toml_.integer(micro_path, 1) : local, toml_.place(micro_path));
    put(node, "global_batch", global, toml_.place(global_path));
    const std::vector<std::string> converters = toml_.texts("model.converters");
    const bool fp8 =
        std::ranges::any_of(converters, [](const std::string& name) { return name.find("float8") != std::string::npos; });
    const bool full = toml_.text("training.mixed_precision_param", "bfloat16") == "float32";
    put(node, "precision",
        fp8    ? "fp8"
        : full ? "fp32"
               : "bf16",
        toml_.place(fp8 ? "model.converters" : "training.mixed_precision_param"));
    for (const char* follows : {"training.mixed_precision_reduce", "quantize.linear.float8.filter_fqns"}) toml_.has(follows);
    put(node, "grad_dtype", "fp32", {.file = file_});
    put(overlap(), name_of(Axis::dp), true, {.file = file_});
    put(node, "framework", "torchtitan", {.file = file_});
    toml_.has("compile.components");
    if (toml_.boolean("compile.enable", toml_.boolean("training.compile", false)))
      put(node, "compiled", true, toml_.place("compile.enable"));
  }

  void recompute() {
    YamlNode& node = section("training");
    const std::string mode_path = "activation_checkpoint.mode", option_path = "activation_checkpoint.selective_ac_option";
    const std::string mode = toml_.text(mode_path, "selective"), option = toml_.text(option_path, "2");
    if (mode == "none" || mode == "full") return put(node, "recompute", mode, toml_.place(mode_path));
    if (mode != "selective")
      throw InputError(toml_.place(mode_path), "mode is " + excerpt(mode) + ", expected none, selective or full");
    if (option == "op") return put(node, "recompute", "selective-op", toml_.place(option_path));
    put(node, "recompute", "full", toml_.place(option_path));
    put(node, "recompute_every", option, toml_.place(option_path));
  }
};

}  // namespace

/// Reads a configuration of TorchTitan, version 0.2. The model is known by its name and flavor.
Imported from_torchtitan(const ForeignText& from) { return TorchTitanReader(from.text, from.file, from.gpus).all(); }

}  // namespace tandem::scenarios
