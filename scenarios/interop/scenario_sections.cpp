#include "scenarios/interop/scenario_sections.h"

#include "scenarios/reading/yaml_mapping.h"
#include "scenarios/schedules/schedule_table.h"
#include "scenarios/spec/names.h"

namespace tandem::scenarios {
namespace {

YamlNode mapping() { return make_node(YamlNode::Kind::mapping, {}); }

YamlNode mla_section(const MlaSpec& mla) {
  YamlNode node = mapping();
  put(node, "q_rank", mla.q_rank);
  put(node, "kv_rank", mla.kv_rank);
  put(node, "rope_dim", mla.rope_dim);
  put(node, "nope_dim", mla.nope_dim);
  put(node, "v_dim", mla.v_dim);
  return node;
}

YamlNode load_section(const ExpertLoad& load) {
  if (load.shares.empty()) {
    YamlNode node = mapping();
    put(node, "zipf", load.zipf);
    return node;
  }
  YamlNode list = make_node(YamlNode::Kind::sequence, {});
  for (const double share : load.shares) {
    YamlNode item = mapping();
    put(item, "share", share);
    list.items.push_back(*item.find("share"));
  }
  return list;
}

YamlNode moe_section(const MoeSpec& moe) {
  YamlNode node = mapping();
  put(node, "experts", moe.experts);
  put(node, "top_k", moe.top_k);
  put(node, "ffn", moe.ffn);
  put(node, "shared_experts", moe.shared_experts);
  put(node, "first_dense_layers", moe.first_dense_layers);
  put(node, "every", moe.every);
  put(node, "capacity_factor", moe.capacity_factor);
  put(node, "node_limit", moe.node_limit);
  put(node, "load", load_section(moe.load));
  put(node, "balance_loss", moe.balance_loss);
  return node;
}

YamlNode model_section(const ModelSpec& model) {
  YamlNode node = mapping();
  put(node, "name", model.name);
  put(node, "layers", model.layers);
  put(node, "hidden", model.hidden);
  put(node, "heads", model.heads);
  put(node, "kv_heads", model.kv_heads);
  if (!model.mla.enabled()) put(node, "head_dim", model.head_dim);
  put(node, "ffn", model.ffn);
  put(node, "gated", model.gated);
  put(node, "vocab", model.vocab);
  put(node, "norm", name_in(norm_names, model.norm));
  put(node, "tied_embeddings", model.tied_embeddings);
  put(node, "rotary", model.rotary);
  if (model.rotary) put(node, "rotary_base", model.rotary_base);
  if (!model.rotary) put(node, "max_positions", model.max_positions);
  if (model.mla.enabled()) put(node, "mla", mla_section(model.mla));
  if (model.moe.experts > 0) put(node, "moe", moe_section(model.moe));
  put(node, "mtp_depth", model.mtp_depth);
  return node;
}

YamlNode list_of(const std::vector<std::string>& texts) {
  YamlNode list = make_node(YamlNode::Kind::sequence, {});
  for (const std::string& text : texts) list.items.push_back(make_scalar(text, {}));
  return list;
}

YamlNode order_list(const std::vector<Axis>& order) {
  std::vector<std::string> names;
  for (const Axis axis : order) names.emplace_back(name_of(axis));
  return list_of(names);
}

YamlNode placement_node(const RankPlacement& placement) {
  if (placement.kind != RankPlacement::Kind::listed)
    return make_scalar(std::string(name_in(placement_names, placement.kind)), {});
  std::vector<std::string> gpus;
  for (const std::uint32_t gpu : placement.gpus) gpus.push_back(std::to_string(gpu));
  return list_of(gpus);
}

YamlNode parallelism_section(const ParallelismSpec& p) {
  YamlNode node = mapping();
  put(node, name_of(Axis::tp), p.tp);
  put(node, "sp", p.sp);
  put(node, name_of(Axis::pp), p.pp);
  put(node, "vpp", p.vpp);
  put(node, name_of(Axis::cp), p.cp);
  put(node, "cp_method", name_in(cp_method_names, p.cp_method));
  put(node, "cp_layout", name_in(cp_layout_names, p.cp_layout));
  put(node, name_of(Axis::ep), p.ep);
  put(node, "etp", p.etp);
  put(node, "expert_axis", name_in(expert_axis_names, p.own_expert_axis));
  put(node, "dispatcher", name_in(dispatcher_names, p.dispatcher));
  put(node, name_of(Axis::dp), p.dp);
  put(node, "zero", static_cast<std::int64_t>(p.zero));
  if (p.zero == 3) {
    put(node, "reshard_after_forward", p.reshard_after_forward);
    put(node, "gather_per_micro_batch", p.gather_per_micro_batch);
    put(node, "prefetch", p.prefetch);
  }
  if (p.hsdp > 0) put(node, "hsdp", p.hsdp);
  put(node, "account_for_embedding", p.account_for_embedding);
  put(node, "account_for_loss", p.account_for_loss);
  if (p.first_stage_layers > 0) put(node, "first_stage_layers", p.first_stage_layers);
  if (p.last_stage_layers > 0) put(node, "last_stage_layers", p.last_stage_layers);
  put(node, "order", order_list(p.order));
  put(node, "placement", placement_node(p.placement));
  put(node, "scatter_gather", p.scatter_gather);
  return node;
}

YamlNode recompute_node(const RecomputeSpec& recompute) {
  const auto named = [](const RecomputeSpec& spec) { return make_scalar(std::string(name_in(recompute_names, spec)), {}); };
  if (recompute.every > 0) return named(full_recompute);
  if (recompute.mlp_every > 1) return named(selective_op_recompute);
  std::vector<std::string> modules;
  for (const Named<RecomputeModule>& module : recompute_module_names)
    if (recompute.*module.value) modules.emplace_back(module.name);
  if (modules.empty()) return named(no_recompute);
  return list_of(modules);
}

YamlNode training_section(const TrainingSpec& training) {
  YamlNode node = mapping();
  put(node, "sequence", training.sequence);
  put(node, "micro_batch", training.micro_batch);
  put(node, "global_batch", training.global_batch);
  put(node, "precision", name_of(training.precision));
  put(node, "grad_dtype", name_of(training.grad_dtype));
  put(node, "schedule", name_of(training.schedule));
  put(node, "recompute", recompute_node(training.recompute));
  if (training.recompute.every > 0) put(node, "recompute_every", training.recompute.every);
  YamlNode& overlap = section_of(node, "overlap");
  put(overlap, name_of(Axis::dp), training.overlap_dp);
  put(overlap, name_of(Axis::tp), training.overlap_tp);
  put(overlap, name_of(Axis::pp), training.overlap_pp);
  const auto bucket = static_cast<double>(training.bucket_parameters) * static_cast<double>(size_of(training.grad_dtype));
  put(node, "bucket_MB", bucket / 1e6);
  put(node, "hierarchical_all_reduce", training.hierarchical_all_reduce);
  put(node, "sync_every", training.sync_every);
  if (training.attention) put(node, "attention", name_of(*training.attention));
  put(node, "grad_compression", training.grad_compression);
  return node;
}

}  // namespace

YamlNode scenario_sections(const Scenario& scenario) {
  YamlNode document = mapping();
  put(document, "name", scenario.name);
  put(document, "model", model_section(scenario.model));
  put(document, "parallelism", parallelism_section(scenario.parallelism));
  put(document, "training", training_section(scenario.training));
  return document;
}

}  // namespace tandem::scenarios
