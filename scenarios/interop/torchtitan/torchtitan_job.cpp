#include "scenarios/interop/torchtitan/torchtitan_job.h"

#include <spdlog/fmt/fmt.h>

#include "runtime/base/nearest.h"
#include "scenarios/schedules/chunk_layout.h"
#include "scenarios/schedules/schedule_table.h"
#include "scenarios/spec/names.h"

namespace tandem::scenarios {
namespace {

class JobWriter {
 public:
  explicit JobWriter(const Scenario& scenario)
      : scenario_(scenario), model_(scenario.model), p_(scenario.parallelism), t_(scenario.training) {}

  TitanJob all() {
    job_.description = scenario_.name;
    model();
    training();
    parallelism();
    pipeline();
    recompute();
    not_there();
    return std::move(job_);
  }

 private:
  const Scenario& scenario_;
  const ModelSpec& model_;
  const ParallelismSpec& p_;
  const TrainingSpec& t_;
  TitanJob job_;

  void lose(std::string field, std::string why) { job_.lost.push_back({std::move(field), std::move(why)}); }
  void add(const char* key, std::int64_t value) { job_.parallelism.emplace_back(key, TitanValue{.number = value}); }
  void add(const char* key, std::string_view value) {
    job_.parallelism.emplace_back(key, TitanValue{.kind = TitanValue::Kind::text, .text = std::string(value)});
  }
  void add_truth(const char* key) {
    job_.parallelism.emplace_back(key, TitanValue{.kind = TitanValue::Kind::truth, .number = 1});
  }

  void model() {
    job_.model = torchtitan_model_of(model_);
    if (!job_.model)
      lose("model", fmt::format("{} has the shape of none of TorchTitan's flavors; a new one is written in Python", model_.name));
  }

  void training() {
    job_.sequence = t_.sequence;
    job_.micro_batch = t_.micro_batch;
    job_.global_batch = t_.global_batch;
    job_.replicas = p_.data_replicas();
    job_.fp32 = t_.precision == DType::f32;
    job_.overlap_tp = t_.overlap_tp;
    job_.precision = t_.precision;
    job_.recipe = t_.recipe;
    if (t_.precision == DType::f16) lose("training.precision", "weights are used in bfloat16 or float32");
    if (t_.grad_dtype != DType::f32) lose("training.grad_dtype", "gradients are reduced in float32");
  }

  void parallelism() {
    data_parallel();
    add("tensor_parallel_degree", p_.tp);
    if (p_.tp > 1 && !p_.sp) lose("parallelism.sp", "tensor parallelism always comes with sequence parallelism");
    if (t_.overlap_tp) add_truth("enable_async_tensor_parallel");
    add("context_parallel_degree", p_.cp);
    if (p_.cp > 1) add("context_parallel_rotate_method", p_.cp_method == CpMethod::all_gather ? "allgather" : "alltoall");
    if (t_.documents.any()) lose("training.documents", "how long documents are is up to the data");
    if (p_.cp_method == CpMethod::ulysses || p_.cp_method == CpMethod::ulysses_ring ||
        (p_.cp == 1 && p_.cp_method != CpMethod::ring))
      lose("parallelism.cp_method", "keys and values are gathered or passed around");
    if (p_.dynamic_cp) lose("parallelism.dynamic_cp", "all context-parallel ranks share every sequence");
    if (p_.cp_layout != CpLayout::zigzag) lose("parallelism.cp_layout", "context-parallel ranks hold two chunks each");
    if (model_.moe.experts > 0) {
      add("expert_parallel_degree", p_.ep);
      add("expert_tensor_parallel_degree", p_.etp);
      if (sends_once(p_.dispatcher)) add("expert_parallel_comm_backend", name_in(dispatcher_names, p_.dispatcher));
    }
    if (p_.own_expert_axis) {
      const std::string why =
          fmt::format("expert ranks are data-parallel ones, here of {} * {} = {}", p_.dp, p_.ep, p_.dp * p_.ep);
      lose("parallelism.expert_axis", why);
      lose("parallelism.dp", why);
    }
    if (p_.order != ParallelismSpec{}.order) lose("parallelism.order", "the mesh is always pp, dp, cp, tp from the outermost in");
    if (!p_.placement.is_packed()) lose("parallelism.placement", "the launcher decides which GPU a rank runs on");
  }

  /// FSDP2 gathers weights, and context-parallel ranks take part in the sharding.
  void data_parallel() {
    const std::int64_t replicas = p_.data_replicas();
    std::int64_t shards = p_.zero == 0 ? 1 : replicas;
    if (p_.zero > 0 && p_.hsdp > 0) {
      const bool fits = p_.hsdp % p_.cp == 0 && replicas % (p_.hsdp / p_.cp) == 0 && p_.hsdp / p_.cp < replicas;
      if (fits) shards = p_.hsdp / p_.cp;
      if (!fits) lose("parallelism.hsdp", "slices are over all context-parallel ranks, in several groups of them");
    }
    add("data_parallel_replicate_degree", replicas / shards);
    add("data_parallel_shard_degree", shards);
    if (p_.zero == 0 && p_.cp > 1) lose("parallelism.zero", "weights are sharded over the context-parallel ranks");
    if (p_.zero == 1 || p_.zero == 2)
      lose("parallelism.zero", "FSDP shards weights, too; nearest is to keep them after the forward, as here");
    if (p_.zero == 3 && shards * p_.cp == 1) lose("parallelism.zero", "nothing is sharded over one rank");
    add("fsdp_reshard_after_forward", reshard());
    if (p_.zero == 3 && p_.prefetch != 1) lose("parallelism.prefetch", "the next unit's weights are gathered ahead");
    if (p_.zero == 3 && p_.gather_unit != GatherUnit::layer) lose("parallelism.gather_unit", "layers are gathered as one");
  }

  const char* reshard() {
    if (p_.zero != 3) return p_.zero == 0 ? "default" : "never";
    const bool piped = p_.pp > 1;
    if (p_.reshard_after_forward && p_.gather_per_micro_batch) return piped ? "always" : "default";
    if (!p_.reshard_after_forward && p_.gather_per_micro_batch == !piped) return "never";
    lose("parallelism.gather_per_micro_batch", piped ? "a pipeline gathers weights once" : "each micro-batch gathers weights");
    return "never";
  }

  void pipeline() {
    add("pipeline_parallel_degree", p_.pp);
    if (p_.pp == 1) {
      if (t_.schedule != ScheduleKind::one_f_one_b) lose("training.schedule", "there is none without a pipeline");
      if (p_.account_for_embedding) lose("parallelism.account_for_embedding", "there is one stage");
      if (p_.account_for_loss) lose("parallelism.account_for_loss", "there is one stage");
      if (!p_.pipeline_layout.empty()) lose("parallelism.pipeline_layout", "there is one stage");
      return;
    }
    const std::string_view name = traits_of(t_.schedule).torchtitan;
    add("pipeline_parallel_schedule", name.empty() ? traits_of(ScheduleKind::one_f_one_b).torchtitan : name);
    if (name.empty()) lose("training.schedule", "it has " + joined(schedules_of_torchtitan()) + " and DualPipeV");
    if (p_.pipeline_layout.empty()) return stages();
    modules();
    if (mtp_is_apart(scenario_)) lose("parallelism.pipeline_layout", "no layers predict further tokens");
  }

  /// Names of modules, as torchtitan/models/llama3/model.py has them.
  void modules() {
    TitanValue value{.kind = TitanValue::Kind::modules};
    for (std::int64_t layer = 0; const std::string& stage : p_.pipeline_layout) {
      std::vector<std::string> names;
      for (const char part : stage) {
        if (part == layout_part::embedding) names.emplace_back("tok_embeddings");
        if (part == layout_part::layer) names.push_back(fmt::format("layers.{}", layer++));
        if (part == layout_part::loss) names.insert(names.end(), {"norm", "output"});
      }
      value.modules.push_back(std::move(names));
    }
    job_.parallelism.emplace_back("module_fqns_per_model_part", std::move(value));
  }

  /// Stages get equal shares, less so many layers of the first and the last for the embedding and the head.
  void stages() {
    const std::int64_t chunks = p_.pp * p_.vpp;
    std::int64_t less_first = p_.account_for_embedding ? 1 : 0, less_last = p_.account_for_loss ? 1 : 0;
    if (p_.first_stage_layers > 0 || p_.last_stage_layers > 0) {
      std::int64_t others = p_.pp, left = model_.layers;
      for (const std::int64_t given : {p_.first_stage_layers, p_.last_stage_layers}) {
        left -= given;
        if (given > 0) --others;
      }
      const std::int64_t each = others > 0 ? left / others : std::max(p_.first_stage_layers, p_.last_stage_layers);
      less_first = p_.first_stage_layers > 0 ? each - p_.first_stage_layers : 0;
      less_last = p_.last_stage_layers > 0 ? each - p_.last_stage_layers : 0;
      if (p_.vpp > 1 || less_first < 0 || less_last < 0 || (less_first < 2 && less_last < 2)) {
        for (const char* field : {"parallelism.first_stage_layers", "parallelism.last_stage_layers"})
          lose(field, "the first and the last stage can only be told how many layers fewer they have");
        less_first = std::max<std::int64_t>(0, less_first);
        less_last = std::max<std::int64_t>(0, less_last);
      }
    }
    add("pipeline_parallel_layers_per_stage", (model_.layers + less_first + less_last) / chunks);
    add("pipeline_parallel_first_stage_less_layers", less_first);
    add("pipeline_parallel_last_stage_less_layers", less_last);
  }

  void recompute() {
    const RecomputeSpec& r = t_.recompute;
    using enum TitanCheckpointing::Mode;
    if (r.every == 1) {
      job_.checkpointing.mode = full;
      return;
    }
    const bool by_operation = r.mlp_every > 1;
    const bool any = r.norm || r.activation || r.attention || r.mlp || r.mla_up;
    if (r.every == 0 && !by_operation) {
      if (any) lose("training.recompute", "it recomputes layers, or operations by a policy of its own (\"op\")");
      return;
    }
    job_.checkpointing = {.mode = by_operation ? operation : every, .every = r.every};
  }

  void lose_gates_and_factors() {
    const MoeSpec& moe = model_.moe;
    if (model_.attention_gate) lose("model.attention_gate", "its attention has no gate");
    if (model_.attention_scale > 0) lose("model.attention_scale", "its scores are divided by the root of a head's width");
    if (model_.activation_limit > 0) lose("model.activation_limit", "its gates have no limit");
    if (model_.activation_offset != 0) lose("model.activation_offset", "its values have no offset");
    if (model_.embedding_factor != 1) lose("model.embedding_factor", "its embeddings have no factor");
    if (model_.logit_factor != 1) lose("model.logit_factor", "its logits have no factor");
    if (moe.router_bias) lose("model.moe.router_bias", "its router has no bias");
    if (moe.shared_gate) lose("model.moe.shared_gate", "its shared experts have no gate");
    if (moe.best_of_group > 0) lose("model.moe.best_of_group", "groups have the sum of their best scores");
  }

  void not_there() {
    if (!model_.causal) lose("model.causal", "it masks what comes later");
    if (model_.encoder.enabled()) lose("model.encoder", "its models of language have none");
    if (model_.linear_bias) lose("model.linear_bias", "its linear layers have none");
    if (model_.attention_bias != AttentionBias::none) lose("model.attention_bias", "its linear layers have none");
    if (model_.moe.linear_bias) lose("model.moe.linear_bias", "its linear layers have none");
    if (model_.logit_softcap > 0) lose("model.logit_softcap", "its logits have no cap");
    lose_gates_and_factors();
    if (model_.indexer.enabled()) lose("model.indexer", "its attention is to all keys");
    if (model_.compressed.enabled()) lose("model.compressed_attention", "its attention is to all keys");
    if (model_.hyper.enabled()) lose("model.hyper_connections", "it has one residual stream");
    if (model_.moe.hash_layers > 0) lose("model.moe.hash_layers", "its router chooses by scores");
    if (t_.hidden_dropout > 0) lose("training.hidden_dropout", "it has no dropout");
    if (t_.attention_dropout > 0) lose("training.attention_dropout", "it has no dropout");
    if (t_.recompute.in_segments()) lose("training.recompute_segment", "every layer keeps its input");
    if (!t_.overlap_dp && p_.data_replicas() > 1) lose("training.overlap.dp", "FSDP overlaps its collectives");
    if (!t_.overlap_dp && p_.data_replicas() == 1) lose("training.overlap.dp", "there is nothing to overlap");
    if (t_.optimizer != OptimizerKind::adam) lose("training.optimizer", "it has Adam alone");
    if (t_.moment_dtype != DType::f32) lose("training.moment_dtype", "Adam's moments are of the weights' type");
    if (t_.second_moment_dtype != t_.moment_dtype)
      lose("training.second_moment_dtype", "Adam's moments are of the weights' type");
    if (t_.master_dtype != DType::f32) lose("training.master_dtype", "the weights themselves are updated, in fp32");
    if (t_.first_last_layers_bf16) {
      for (const char* field : {"first_last_layers_bf16", "num_layers_at_start_in_bf16", "num_layers_at_end_in_bf16"})
        lose(std::string("training.") + field, "its converters take all layers");
    }
    if (t_.precision == DType::f8 && t_.recipe != Recipe::current && t_.recipe != Recipe::mxfp8)
      lose("training.recipe", "whole tensors are scaled by their own maxima, or 32 elements by theirs (mxfp8)");
    if (t_.tp_only_amax_red) lose("training.tp_only_amax_red", "tensors are scaled by their own maxima");
    if (t_.cuda_graph != CudaGraph::none) lose("training.cuda_graph", "it captures no graphs");
    if (t_.param_gather)
      lose(t_.precision == DType::f4 ? "training.fp4_param_gather" : "training.fp8_param_gather", "it needs ZeRO-3 there");
    if (t_.fp8_attention) lose("training.fp8_attention", "attention computes in bfloat16");
    if (t_.fp8_output_proj) lose("training.fp8_output_proj", "its converters pass over the LM head");
    if (t_.fp8_activation_input) lose("training.fp8_activation_input", "activations are kept as they are");
    if (t_.overlap_ep) lose("training.overlap.ep", "experts' exchanges are waited for");
    if (t_.gates_at_experts && model_.moe.experts > 0)
      lose("training.gates_at_experts", "scores weight what experts return, or what is sent to them (score_before_experts)");
    if (t_.overlap_pp && p_.pp > 1) lose("training.overlap.pp", "stages wait for what they send and receive");
    if (t_.hierarchical_all_reduce) lose("training.hierarchical_all_reduce", "gradients are reduced in one collective");
    if (t_.local_steps()) lose("training.sync_every", "gradients are reduced in every step");
    if (t_.compressor.keeps_residuals()) lose("training.compressor", "gradients travel as they are");
    if (!t_.sync.empty()) lose("training.sync", "all replicas reduce their gradients together");
    if (t_.grad_compression > 1) lose("training.grad_compression", "gradients travel as they are");
    if (t_.offload.any()) lose("training.offload", "what FSDP offloads is all of weights, gradients and states, or nothing");
    if (t_.attention) lose("training.attention", "scaled_dot_product_attention chooses its kernel");
    if (p_.scatter_gather) lose("parallelism.scatter_gather", "with sequence parallelism there is nothing to gather");
    // Buckets are FSDP's units there, whatever their size.
    lose("training.bucket_MB", "gradients are reduced by layer");
  }
};

}  // namespace

std::string modules_literal(const TitanValue& value, const std::string& head) {
  std::string parts;
  for (const std::vector<std::string>& stage : value.modules) {
    std::string names;
    for (const std::string& name : stage) names += (names.empty() ? "\"" : ", \"") + (name == "output" ? head : name) + "\"";
    parts += (parts.empty() ? "[" : ", [") + names + "]";
  }
  return "[" + parts + "]";
}

TitanJob torchtitan_job(const Scenario& scenario) { return JobWriter(scenario).all(); }

}  // namespace tandem::scenarios
