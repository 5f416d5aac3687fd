#include "studies/search/plan.h"

#include "scenarios/reading/document.h"
#include "scenarios/reading/overlay.h"

namespace tandem::studies {
namespace {

YamlNode scalar(std::int64_t value) { return make_scalar(std::to_string(value), {}); }

YamlNode truth(bool value) { return make_scalar(value ? "true" : "false", {}); }

}  // namespace

Assignments assignments_of(const Plan& plan, const PlanChoices& choices, const SearchSpec& spec) {
  Assignments all;
  const auto set = [&](std::string_view path, YamlNode value) { all.push_back({std::string(path), {}, std::move(value)}); };
  const auto take_away = [&](const std::string& path) {
    if (find_path(spec.document, path) != nullptr) set(path, make_node(YamlNode::Kind::null, {}));
  };
  const auto choose = [](const std::vector<YamlNode>& values, std::int32_t index) {
    return values[static_cast<std::size_t>(index)];
  };
  set("cluster.gpus", scalar(plan.gpus));
  set(path_of(SearchAxis::tp), scalar(plan.tp));
  set(path_of(SearchAxis::sp), truth(plan.sp != 0));
  set(path_of(SearchAxis::pp), scalar(plan.pp));
  set(path_of(SearchAxis::vpp), scalar(plan.vpp));
  set(path_of(SearchAxis::cp), scalar(plan.cp));
  set(path_of(SearchAxis::ep), scalar(plan.ep));
  set(path_of(SearchAxis::etp), scalar(plan.etp));
  set(path_of(SearchAxis::dp), scalar(plan.dp));
  set(path_of(SearchAxis::zero), scalar(plan.zero));
  set(path_of(SearchAxis::micro_batch), scalar(plan.micro_batch));
  set(path_of(SearchAxis::schedule), choose(choices.schedule, plan.schedule));
  set(path_of(SearchAxis::recompute), choose(choices.recompute, plan.recompute));
  if (choices.order.size() > 1) set(path_of(SearchAxis::order), choose(choices.order, plan.order));
  if (choices.placement.size() > 1) set(path_of(SearchAxis::placement), choose(choices.placement, plan.placement));

  // Fields that belong to the scenario's own plan, and that another one would contradict.
  const bool recomputes_whole_layers = choices.recomputes[static_cast<std::size_t>(plan.recompute)].every > 0;
  if (!recomputes_whole_layers) take_away("training.recompute_every");
  if (plan.zero != 3)
    for (const char* field : {"reshard_after_forward", "gather_per_micro_batch", "prefetch"})
      take_away(std::string("parallelism.") + field);
  if (plan.ep == 1) take_away("parallelism.dispatcher");
  const ParallelismSpec& own = spec.scenario.parallelism;
  if (plan.first_stage_layers == 0 && plan.last_stage_layers == 0) {
    take_away("parallelism.first_stage_layers");
    take_away("parallelism.last_stage_layers");
  } else {
    set("parallelism.first_stage_layers", scalar(plan.first_stage_layers));
    set("parallelism.last_stage_layers", scalar(plan.last_stage_layers));
    if (own.account_for_embedding) take_away("parallelism.account_for_embedding");
    if (own.account_for_loss) take_away("parallelism.account_for_loss");
  }
  return all;
}

std::string to_text(const Plan& plan, const PlanChoices& choices) {
  std::string text;
  const auto add = [&](std::string_view name, const std::string& value) {
    text += (text.empty() ? "" : " ") + std::string(name) + "=" + value;
  };
  const auto add_size = [&](SearchAxis axis, std::int64_t value, bool always) {
    if (always || value != 1) add(name_of(axis), std::to_string(value));
  };
  const auto add_choice = [&](SearchAxis axis, const std::vector<YamlNode>& values, std::int32_t index, bool always) {
    if (always || values.size() > 1) add(name_of(axis), to_yaml(values[static_cast<std::size_t>(index)]));
  };
  add_size(SearchAxis::tp, plan.tp, true);
  if (plan.tp > 1) add(name_of(SearchAxis::sp), plan.sp != 0 ? "true" : "false");
  add_size(SearchAxis::pp, plan.pp, true);
  add_size(SearchAxis::vpp, plan.vpp, false);
  add_size(SearchAxis::cp, plan.cp, false);
  add_size(SearchAxis::ep, plan.ep, false);
  add_size(SearchAxis::etp, plan.etp, false);
  add_size(SearchAxis::dp, plan.dp, true);
  add(name_of(SearchAxis::zero), std::to_string(plan.zero));
  add_size(SearchAxis::micro_batch, plan.micro_batch, true);
  if (plan.pp > 1) add_choice(SearchAxis::schedule, choices.schedule, plan.schedule, true);
  add_choice(SearchAxis::recompute, choices.recompute, plan.recompute, true);
  add_choice(SearchAxis::order, choices.order, plan.order, false);
  add_choice(SearchAxis::placement, choices.placement, plan.placement, false);
  return text;
}

YamlNode document_of(const Plan& plan, const PlanChoices& choices, const SearchSpec& spec) {
  YamlNode document = spec.document;
  for (const Assignment& assignment : assignments_of(plan, choices, spec)) apply_override(document, assignment);
  return document;
}

Scenario scenario_of(const Plan& plan, const PlanChoices& choices, const Scenario& base) {
  Scenario scenario = base;
  scenario.cluster.gpus = plan.gpus;
  ParallelismSpec& p = scenario.parallelism;
  p.tp = plan.tp;
  p.sp = plan.sp != 0;
  p.pp = plan.pp;
  p.vpp = plan.vpp;
  p.cp = plan.cp;
  p.ep = plan.ep;
  p.etp = plan.etp;
  p.dp = plan.dp;
  p.zero = plan.zero;
  // As read_parallelism has them by default, or where the scenario may say otherwise what takes least time.
  const bool may_say = plan.zero == 3 && base.parallelism.zero == 3;
  p.gather_per_micro_batch = p.pp == 1 && (!may_say || base.parallelism.gather_per_micro_batch);
  p.reshard_after_forward = p.gather_per_micro_batch && (!may_say || base.parallelism.reshard_after_forward);
  if (plan.ep == 1) p.dispatcher = Dispatcher::nccl;
  p.first_stage_layers = plan.first_stage_layers;
  p.last_stage_layers = plan.last_stage_layers;
  if (p.first_stage_layers > 0 || p.last_stage_layers > 0) p.account_for_embedding = p.account_for_loss = false;
  p.order = choices.orders[static_cast<std::size_t>(plan.order)];
  p.placement = choices.placements[static_cast<std::size_t>(plan.placement)];
  TrainingSpec& t = scenario.training;
  t.micro_batch = plan.micro_batch;
  t.schedule = choices.schedules[static_cast<std::size_t>(plan.schedule)];
  const RecomputeSpec& recompute = choices.recomputes[static_cast<std::size_t>(plan.recompute)];
  t.recompute = recompute;
  return scenario;
}

}  // namespace tandem::studies
