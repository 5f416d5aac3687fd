#include <spdlog/fmt/fmt.h>

#include "runtime/base/lower_case.h"
#include "runtime/base/nearest.h"
#include "scenarios/interop/deepspeed/deepspeed_template.h"
#include "scenarios/interop/foreign_tree.h"
#include "scenarios/interop/interop.h"
#include "scenarios/reading/json_tree.h"
#include "scenarios/reading/yaml_mapping.h"
#include "scenarios/spec/names.h"

namespace tandem::scenarios {
namespace {

/// Of sequences, where nobody states it.
constexpr std::int64_t usual_deepspeed_sequence = 4096;
/// deepspeed/runtime/zero/config.py, reduce_bucket_size, in elements.
constexpr double usual_bucket_elements = 5e8;

/// Defaults are those of deepspeed/runtime/config.py and runtime/zero/config.py.
class DeepSpeedReader {
 public:
  explicit DeepSpeedReader(const ForeignText& from)
      : from_(from),
        tree_(parse_json(filled_in_template(from.text, from.file, from.environment), from.file), from.file),
        document_(make_node(YamlNode::Kind::mapping, {.file = from.file})) {}

  Imported all() {
    if (tree_.root().kind != YamlNode::Kind::mapping)
      throw InputError({.file = from_.file}, "is no object, expected a configuration of DeepSpeed");
    check_is_deepspeed();
    section_of(document_, "parallelism", {.file = from_.file});
    section_of(document_, "training", {.file = from_.file});
    ranks();
    precision();
    zero();
    batch();
    std::string sequence = fmt::format("sequences of {} tokens (--set training.sequence)", usual_deepspeed_sequence);
    put(training(), "sequence", usual_deepspeed_sequence, {.file = from_.file});
    assumed_.push_back(std::move(sequence));
    assumed_.emplace_back("no recomputation, which the model's code decides (--set training.recompute)");
    put(training(), "framework", "deepspeed", {.file = from_.file});
    optimizer();
    pass_over_rest();
    Imported imported{.document = std::move(document_), .ignored = tree_.unknown()};
    imported.notes = std::move(notes_);
    imported.assumed = std::move(assumed_);
    imported.missing.push_back({.field = "model",
                                .place = {.file = from_.file},
                                .sentence =
                                    "a configuration of DeepSpeed says nothing of the model, expected --set model=NAME, a "
                                    "preset or the path of a config.json"});
    return imported;
  }

 private:
  ForeignText from_;
  ForeignTree tree_;
  YamlNode document_;
  std::vector<std::string> notes_, assumed_;
  std::int64_t tp_ = 1, cp_ = 1, zero_ = 0;
  std::string gradient_type_ = "fp32";

  YamlNode& parallelism() { return *document_.find("parallelism"); }
  YamlNode& training() { return *document_.find("training"); }

  /// Whether the trainer of Hugging Face fills it in.
  bool is_auto(const std::string& path) {
    const YamlNode* node = tree_.find(path);
    return node != nullptr && node->kind == YamlNode::Kind::scalar && node->text == "auto";
  }
  bool is_stated(const std::string& path) { return tree_.has(path) && !is_auto(path); }
  std::int64_t size(const std::string& path, std::int64_t fallback) {
    return is_stated(path) ? tree_.positive(path, fallback) : fallback;
  }
  bool truth(const std::string& path, bool fallback) { return is_stated(path) ? tree_.boolean(path, fallback) : fallback; }

  void check_is_deepspeed() {
    for (const char* key : {"zero_optimization", "train_batch_size", "train_micro_batch_size_per_gpu", "bf16", "fp16",
                            "gradient_accumulation_steps"})
      if (tree_.root().find(key) != nullptr) return;
    throw InputError({.file = from_.file},
                     "has neither zero_optimization nor train_batch_size nor train_micro_batch_size_per_gpu, "
                     "expected a configuration of DeepSpeed");
  }

  /// AutoTP, and Ulysses' sequence parallelism.
  void ranks() {
    tp_ = size("tensor_parallel.autotp_size", 1);
    cp_ = size("sequence_parallel_size", 1);
    put(parallelism(), name_of(Axis::tp), tp_, tree_.place("tensor_parallel.autotp_size"));
    put(parallelism(), name_of(Axis::cp), cp_, tree_.place("sequence_parallel_size"));
    if (cp_ > 1)
      put(parallelism(), "cp_method", name_in(cp_method_names, CpMethod::ulysses), tree_.place("sequence_parallel_size"));
  }

  void precision() {
    const bool half = truth("fp16.enabled", false);
    bool bf16 = truth("bf16.enabled", truth("bfloat16.enabled", false));
    if (!half && !bf16 && (is_auto("bf16.enabled") || is_auto("fp16.enabled"))) {
      bf16 = true;
      assumed_.emplace_back("bf16 for \"auto\" (--set training.precision)");
    }
    if (half && bf16) throw InputError(tree_.place("fp16.enabled"), "both fp16 and bf16 are enabled, expected one of them");
    const std::string type = half ? "fp16" : bf16 ? "bf16" : "fp32";
    put(training(), "precision", type, tree_.place(half ? "fp16.enabled" : "bf16.enabled"));
    gradient_type_ = is_stated("communication_data_type") ? tree_.text("communication_data_type", type) : type;
    put(training(), "grad_dtype", gradient_type_, tree_.place("communication_data_type"));
  }

  void zero() {
    const std::string stage = "zero_optimization.stage";
    zero_ = is_stated(stage) ? tree_.integer(stage, 0) : 0;
    if (is_auto(stage)) throw InputError(tree_.place(stage), stage + " is auto, expected 0, 1, 2 or 3");
    if (zero_ < 0 || zero_ > 3)
      throw InputError(tree_.place(stage), stage + " is " + std::to_string(zero_) + ", expected 0, 1, 2 or 3");
    put(parallelism(), "zero", zero_, tree_.place(stage));
    if (const std::string mics = "zero_optimization.mics_shard_size"; zero_ == 3 && tree_.integer(mics, -1) > 1)
      put(parallelism(), "hsdp", tree_.integer(mics, -1), tree_.place(mics));
    const std::string overlaps = "zero_optimization.overlap_comm";
    put(section_of(training(), "overlap", {.file = from_.file}), name_of(Axis::dp), truth(overlaps, zero_ == 3),
        tree_.place(overlaps));
    bucket();
    offload();
  }

  void bucket() {
    const std::string path = "zero_optimization.reduce_bucket_size";
    if (is_auto(path)) {
      assumed_.emplace_back("a bucket of gradients as large as usual for \"auto\" (--set training.bucket_MB)");
      return;
    }
    const double elements = tree_.number(path, usual_bucket_elements);
    const double bytes = gradient_type_ == "fp32" ? 4 : 2;
    put(training(), "bucket_MB", elements * bytes / 1e6, tree_.place(path));
  }

  void offload() {
    const std::string states = "zero_optimization.offload_optimizer", weights = "zero_optimization.offload_param";
    const std::string device = tree_.text(states + ".device", truth("zero_optimization.cpu_offload", false) ? "cpu" : "none");
    if (device == "auto") return pass_over_offload();
    if (device != "none" && zero_ == 0)
      throw InputError(tree_.place(states), "offload_optimizer needs zero_optimization.stage 1, 2 or 3, which is 0");
    if (device != "none") {
      YamlNode& to = section_of(training(), "offload", tree_.place(states));
      put(to, "optimizer", tree_.number(states + ".ratio", 1), tree_.place(states));
      if (device == "nvme") note(states + ".device", "the optimizer's states are on an SSD; here they are in the host's memory");
    }
    if (tree_.text(weights + ".device", "none") != "none")
      note(weights, "offload_param keeps weights on the host; here they stay on the GPUs");
    pass_over_offload();
  }
  void pass_over_offload() {
    for (const char* what : {"offload_optimizer", "offload_param"}) tree_.pass_over("zero_optimization." + std::string(what));
  }

  void note(const std::string& path, const std::string& sentence) { notes_.push_back(placed(tree_.place(path), sentence)); }

  /// train_batch_size = train_micro_batch_size_per_gpu * gradient_accumulation_steps * data-parallel ranks; two say the third.
  void batch() {
    const std::string whole = "train_batch_size", micro = "train_micro_batch_size_per_gpu", steps = "gradient_accumulation_steps";
    const std::int64_t stated = size(whole, 0);
    std::int64_t of_micro = size(micro, 0), accumulated = size(steps, 0);
    std::int64_t replicas = from_.gpus / (tp_ * cp_);
    if (replicas == 0 && stated > 0 && of_micro > 0 && accumulated > 0) replicas = stated / (of_micro * accumulated);
    if (of_micro == 0 && stated > 0 && accumulated > 0 && replicas > 0) of_micro = stated / (accumulated * replicas);
    if (of_micro == 0) {
      of_micro = 1;
      assumed_.emplace_back("micro-batches of 1 sequence (--set training.micro_batch)");
    }
    if (accumulated == 0 && stated == 0) {
      accumulated = 1;
      assumed_.emplace_back("1 micro-batch in a step (--set training.global_batch)");
    }
    if (from_.gpus == 0 && replicas > 0) put(parallelism(), name_of(Axis::dp), replicas, tree_.place(whole));
    if (stated == 0 && replicas == 0)
      throw InputError({.file = from_.file}, "does not tell on how many GPUs it runs, expected --gpus");
    const std::int64_t global = stated > 0 ? stated : of_micro * accumulated * replicas;
    if (replicas > 0 && (global % (of_micro * replicas) != 0 || (accumulated > 0 && global != of_micro * accumulated * replicas)))
      throw InputError(
          tree_.place(whole),
          fmt::format("train_batch_size is {}, expected {} sequences on each of {} data-parallel ranks times {}", global,
                      of_micro, replicas, accumulated > 0 ? std::to_string(accumulated) : "whole micro-batches"));
    put(training(), "micro_batch", of_micro, tree_.place(micro));
    put(training(), "global_batch", global, tree_.place(whole));
  }

  void optimizer() {
    const std::string path = "optimizer.type", name = lower_case(tree_.text(path, "adam"));
    if (name == "muon")
      put(training(), "optimizer", "muon", tree_.place(path));
    else if (name.find("adam") == std::string::npos)
      note(path, "the optimizer " + excerpt(name) + " is none that a scenario has; here it is Adam");
    else if (name.starts_with("onebit") || name.starts_with("zeroone"))
      note(path, excerpt(name) + " sends signs of gradients after its warm-up; here they travel as they are");
  }

  void pass_over_rest() {
    for (const char* field : {"steps_per_print",
                              "gradient_clipping",
                              "prescale_gradients",
                              "gradient_predivide_factor",
                              "wall_clock_breakdown",
                              "zero_allow_untested_optimizer",
                              "zero_force_ds_cpu_optimizer",
                              "optimizer",
                              "scheduler",
                              "fp16",
                              "bf16",
                              "bfloat16",
                              "tensorboard",
                              "wandb",
                              "csv_monitor",
                              "comms_logger",
                              "flops_profiler",
                              "dump_state",
                              "memory_breakdown",
                              "checkpoint",
                              "tensor_parallel",
                              "autotuning",
                              "train_batch_size",
                              "train_micro_batch_size_per_gpu",
                              "gradient_accumulation_steps"})
      tree_.pass_over(field);
    for (const char* field :
         {"contiguous_gradients", "reduce_scatter", "allgather_partitions", "allgather_bucket_size", "round_robin_gradients",
          "load_from_fp32_weights", "gather_16bit_weights_on_model_save", "stage3_gather_16bit_weights_on_model_save",
          "stage3_gather_fp16_weights_on_model_save", "sub_group_size", "elastic_checkpoint", "ignore_unused_parameters",
          "mics_hierarchical_params_gather", "cpu_offload", "cpu_offload_use_pin_memory"})
      tree_.pass_over("zero_optimization." + std::string(field));
  }
};

}  // namespace

/// Reads a configuration of DeepSpeed (0.10 to 0.17, deepspeed.ai/docs/config-json), which says how a model is trained and not
/// which.
Imported from_deepspeed(const ForeignText& from) { return DeepSpeedReader(from).all(); }

}  // namespace tandem::scenarios
