#include <algorithm>
#include <stdexcept>

#include "scenarios/reading/reader.h"
#include "scenarios/reading/sections.h"
#include "scenarios/reading/yaml_mapping.h"

namespace tandem::scenarios {

std::vector<Axis> read_order(const Reader& parallelism) {
  if (!parallelism.has("order")) return ParallelismSpec{}.order;
  const YamlNode& list = parallelism.child("order");
  const std::string expected = ", expected each of tp, cp, ep, dp, pp once, innermost first";
  if (list.kind != YamlNode::Kind::sequence) parallelism.fail("order", "parallelism.order is " + describe(list) + expected);
  std::vector<Axis> order;
  for (const YamlNode& item : list.items) {
    const Axis axis = parallelism.choice_of<Axis>(item, "order", choices({Axis::tp, Axis::cp, Axis::ep, Axis::dp, Axis::pp}));
    if (std::ranges::find(order, axis) != order.end())
      throw InputError(item.place, "parallelism.order names " + item.text + " twice" + expected);
    order.push_back(axis);
  }
  if (order.size() != ParallelismSpec{}.order.size())
    parallelism.fail("order", "parallelism.order names " + std::to_string(order.size()) + " axes" + expected);
  return order;
}

RankPlacement read_placement(const Reader& parallelism) {
  using Kind = RankPlacement::Kind;
  RankPlacement placement;
  if (parallelism.child("placement").kind != YamlNode::Kind::sequence) {
    placement.kind = parallelism.choice<Kind>("placement", choices(placement_names), Kind::packed);
    return placement;
  }
  placement.kind = Kind::listed;
  for (const std::int64_t gpu : parallelism.integers("placement", {0, max_gpus - 1}))
    placement.gpus.push_back(static_cast<std::uint32_t>(gpu));
  return placement;
}

namespace {

PipelineLayout read_layout(const Reader& parallelism) {
  if (!parallelism.has("pipeline_layout")) return {};
  try {
    return parse_pipeline_layout(parallelism.text("pipeline_layout"));
  } catch (const std::invalid_argument& error) {
    parallelism.fail("pipeline_layout", error.what());
  }
}

/// Without pipeline: gathered for the forward and again for the backward of each micro-batch. With one: gathered once in a step,
/// as PyTorch's pipeline schedules do with FSDP2 (torch/distributed/pipelining/stage.py, backward_maybe_with_nosync).
void read_sharded_weights(const Reader& parallelism, ParallelismSpec& spec) {
  for (const char* key : {"reshard_after_forward", "gather_per_micro_batch", "prefetch"}) {
    if (spec.zero != 3 && parallelism.has(key))
      parallelism.fail(key, parallelism.full_name(key) + " with zero " + std::to_string(spec.zero) +
                                ", expected zero 3, which alone gathers weights for each use");
  }
  const bool asked_to_reshard = parallelism.boolean("reshard_after_forward", false);
  spec.gather_per_micro_batch = parallelism.boolean("gather_per_micro_batch", spec.pp == 1 || asked_to_reshard);
  spec.reshard_after_forward = parallelism.boolean("reshard_after_forward", spec.pp == 1 && spec.gather_per_micro_batch);
  // With any zero, as a framework's default.
  spec.gather_unit = parallelism.choice<GatherUnit>("gather_unit", choices(gather_unit_names), GatherUnit::layer);
  spec.prefetch = parallelism.integer("prefetch", {0, 1'000}, 1);
}

}  // namespace

ParallelismSpec read_parallelism(const YamlNode& node) {
  const Reader parallelism(node, "parallelism",
                           {name_of(Axis::tp),
                            "sp",
                            name_of(Axis::pp),
                            "vpp",
                            name_of(Axis::cp),
                            name_of(Axis::ep),
                            "etp",
                            "dispatcher",
                            name_of(Axis::dp),
                            "zero",
                            "account_for_embedding",
                            "account_for_loss",
                            "first_stage_layers",
                            "last_stage_layers",
                            "pipeline_layout",
                            "order",
                            "reshard_after_forward",
                            "gather_per_micro_batch",
                            "prefetch",
                            "gather_unit",
                            "hsdp",
                            "cp_method",
                            "cp_layout",
                            "cp_ulysses",
                            "dynamic_cp",
                            "expert_axis",
                            "placement",
                            "scatter_gather"});
  const Range<std::int64_t> size{1, max_gpus};
  ParallelismSpec spec;
  spec.tp = parallelism.integer(name_of(Axis::tp), size, 1);
  spec.sp = parallelism.boolean("sp", false);
  spec.pp = parallelism.integer(name_of(Axis::pp), size, 1);
  spec.vpp = parallelism.integer("vpp", {1, max_layers}, 1);
  spec.cp = parallelism.integer(name_of(Axis::cp), size, 1);
  spec.cp_method = parallelism.choice<CpMethod>("cp_method", choices(cp_method_names), CpMethod::ring);
  // Ulysses attends to whole sequences, in their order.
  spec.cp_layout = parallelism.choice<CpLayout>("cp_layout", choices(cp_layout_names),
                                                spec.cp_method == CpMethod::ulysses ? CpLayout::contiguous : CpLayout::zigzag);
  const bool two_levels = spec.cp_method == CpMethod::ulysses_ring;
  if (two_levels || parallelism.has("cp_ulysses")) spec.cp_ulysses = parallelism.integer("cp_ulysses", {2, max_gpus});
  if (!two_levels && spec.cp_ulysses > 0)
    parallelism.fail("cp_ulysses", "parallelism.cp_ulysses without cp_method ulysses-ring, expected both or neither");
  spec.dynamic_cp = parallelism.boolean("dynamic_cp", false);
  spec.ep = parallelism.integer(name_of(Axis::ep), size, 1);
  spec.etp = parallelism.integer("etp", size, 1);
  std::vector<Choice<Dispatcher>> dispatchers = choices(dispatcher_names);
  dispatchers.push_back({"alltoall", Dispatcher::nccl});  // Megatron's names of the two
  dispatchers.push_back({"flex", Dispatcher::deepep});
  spec.dispatcher = parallelism.choice<Dispatcher>("dispatcher", dispatchers, Dispatcher::nccl);
  spec.dp = parallelism.integer(name_of(Axis::dp), size, 0);
  spec.zero = parallelism.choice<int>("zero", {{"0", 0}, {"1", 1}, {"2", 2}, {"3", 3}}, 1);
  spec.account_for_embedding = parallelism.boolean("account_for_embedding", false);
  spec.account_for_loss = parallelism.boolean("account_for_loss", false);
  spec.first_stage_layers = parallelism.integer("first_stage_layers", {1, max_layers}, 0);
  spec.last_stage_layers = parallelism.integer("last_stage_layers", {1, max_layers}, 0);
  spec.pipeline_layout = read_layout(parallelism);
  spec.order = read_order(parallelism);
  spec.placement = read_placement(parallelism);
  spec.scatter_gather = parallelism.boolean("scatter_gather", false);
  read_sharded_weights(parallelism, spec);
  if (parallelism.has("hsdp")) spec.hsdp = parallelism.integer("hsdp", {2, max_gpus});
  spec.own_expert_axis = parallelism.choice<bool>("expert_axis", choices(expert_axis_names), false);
  return spec;
}

namespace {

YamlNode placement_node(const RankPlacement& placement) {
  if (placement.kind != RankPlacement::Kind::listed)
    return make_scalar(std::string(name_in(placement_names, placement.kind)), {});
  std::vector<std::string> gpus;
  for (const std::uint32_t gpu : placement.gpus) gpus.push_back(std::to_string(gpu));
  return list_of(gpus);
}

}  // namespace

YamlNode write_order(const std::vector<Axis>& order) {
  std::vector<std::string> names;
  for (const Axis axis : order) names.emplace_back(name_of(axis));
  return list_of(names);
}

YamlNode write_parallelism(const ParallelismSpec& p) {
  YamlNode node = make_node(YamlNode::Kind::mapping, {});
  put(node, name_of(Axis::tp), p.tp);
  put(node, "sp", p.sp);
  put(node, name_of(Axis::pp), p.pp);
  put(node, "vpp", p.vpp);
  put(node, name_of(Axis::cp), p.cp);
  put(node, "cp_method", name_in(cp_method_names, p.cp_method));
  put(node, "cp_layout", name_in(cp_layout_names, p.cp_layout));
  if (p.dynamic_cp) put(node, "dynamic_cp", true);
  if (p.cp_ulysses > 0) put(node, "cp_ulysses", p.cp_ulysses);
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
    put(node, "gather_unit", name_in(gather_unit_names, p.gather_unit));
  }
  if (p.hsdp > 0) put(node, "hsdp", p.hsdp);
  put(node, "account_for_embedding", p.account_for_embedding);
  put(node, "account_for_loss", p.account_for_loss);
  if (p.first_stage_layers > 0) put(node, "first_stage_layers", p.first_stage_layers);
  if (p.last_stage_layers > 0) put(node, "last_stage_layers", p.last_stage_layers);
  if (!p.pipeline_layout.empty()) put(node, "pipeline_layout", layout_text(p.pipeline_layout));
  put(node, "order", write_order(p.order));
  put(node, "placement", placement_node(p.placement));
  put(node, "scatter_gather", p.scatter_gather);
  return node;
}

}  // namespace tandem::scenarios
