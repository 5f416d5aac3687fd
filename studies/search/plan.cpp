#include "studies/search/plan.h"

#include <array>

#include "scenarios/reading/document.h"
#include "scenarios/reading/overlay.h"

namespace tandem::studies {
namespace {

YamlNode scalar(std::int64_t value) { return make_scalar(std::to_string(value), {}); }

/// The axis's value in the plan, as it stands in a scenario.
YamlNode value_of(const Plan& plan, SearchAxis axis, const PlanChoices& choices) {
  const std::int64_t value = plan.*field_of(axis);
  if (axis == SearchAxis::sp) return make_scalar(value != 0 ? "true" : "false", {});
  const std::vector<YamlNode>& texts = choices.of(axis);
  return texts.empty() ? scalar(value) : texts[static_cast<std::size_t>(value)];
}

/// Whether the plan leaves the axis as the scenario has it, which may have no such field. Without a list of values, the
/// scenario's own is the first.
bool is_left_to_scenario(const Plan& plan, SearchAxis axis, const PlanChoices& choices) {
  if (axis != SearchAxis::order && axis != SearchAxis::placement) return false;
  return choices.of(axis).size() == 1 || (!choices.is_stated[static_cast<std::size_t>(axis)] && plan.*field_of(axis) == 0);
}

/// Whether the axis says nothing of the plan.
bool is_silent(const Plan& plan, SearchAxis axis, const PlanChoices& choices) {
  switch (axis) {
    case SearchAxis::sp:
      return plan.tp == 1;
    case SearchAxis::schedule:
      return plan.pp == 1;
    case SearchAxis::vpp:
    case SearchAxis::cp:
    case SearchAxis::ep:
    case SearchAxis::etp:
      return plan.*field_of(axis) == 1;
    default:
      return is_left_to_scenario(plan, axis, choices);
  }
}

}  // namespace

std::int64_t Plan::*field_of(SearchAxis axis) {
  static constexpr std::array<std::int64_t Plan::*, search_axis_count> fields{
      &Plan::tp, &Plan::sp,   &Plan::pp,          &Plan::vpp,      &Plan::cp,        &Plan::ep,    &Plan::etp,
      &Plan::dp, &Plan::zero, &Plan::micro_batch, &Plan::schedule, &Plan::recompute, &Plan::order, &Plan::placement};
  return fields[static_cast<std::size_t>(axis)];
}

Assignments assignments_of(const Plan& plan, const PlanChoices& choices, const SearchSpec& spec) {
  Assignments all;
  const auto set = [&](std::string_view path, YamlNode value) { all.push_back({std::string(path), {}, std::move(value)}); };
  const auto take_away = [&](const std::string& path) {
    if (find_path(spec.document, path) != nullptr) set(path, make_node(YamlNode::Kind::null, {}));
  };
  set("cluster.gpus", scalar(plan.gpus));
  for (const SearchAxis axis : search_axes)
    if (!is_left_to_scenario(plan, axis, choices)) set(path_of(axis), value_of(plan, axis, choices));

  // Fields that belong to the scenario's own plan, and that another one would contradict.
  const bool recomputes_whole_layers = choices.recomputes[static_cast<std::size_t>(plan.recompute)].every > 0;
  if (!recomputes_whole_layers)
    for (const char* field : {"training.recompute_every", "training.recompute_segment"}) take_away(field);
  if (plan.zero != 3)
    for (const char* field : {"reshard_after_forward", "gather_per_micro_batch", "prefetch"})
      take_away(std::string("parallelism.") + field);
  if (plan.ep == 1) take_away("parallelism.dispatcher");
  const ParallelismSpec& own = spec.scenario.parallelism;
  if (plan.has_layout == 0) take_away("parallelism.pipeline_layout");
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
  for (const SearchAxis axis : search_axes) {
    if (is_silent(plan, axis, choices)) continue;
    if (!text.empty()) text += ' ';
    text += std::string(name_of(axis)) + "=" + to_yaml(value_of(plan, axis, choices));
  }
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
  p.zero = static_cast<std::int32_t>(plan.zero);
  // As read_parallelism has them by default, or where the scenario may say otherwise what takes least time.
  const bool may_say = plan.zero == 3 && base.parallelism.zero == 3;
  p.gather_per_micro_batch = p.pp == 1 && (!may_say || base.parallelism.gather_per_micro_batch);
  p.reshard_after_forward = p.gather_per_micro_batch && (!may_say || base.parallelism.reshard_after_forward);
  if (plan.ep == 1) p.dispatcher = Dispatcher::nccl;
  p.first_stage_layers = plan.first_stage_layers;
  p.last_stage_layers = plan.last_stage_layers;
  if (plan.has_layout == 0) p.pipeline_layout.clear();
  if (p.first_stage_layers > 0 || p.last_stage_layers > 0) p.account_for_embedding = p.account_for_loss = false;
  p.order = choices.orders[static_cast<std::size_t>(plan.order)];
  p.placement = choices.placements[static_cast<std::size_t>(plan.placement)];
  TrainingSpec& t = scenario.training;
  t.micro_batch = plan.micro_batch;
  t.schedule = choices.schedules[static_cast<std::size_t>(plan.schedule)];
  t.recompute = choices.recomputes[static_cast<std::size_t>(plan.recompute)];
  return scenario;
}

}  // namespace tandem::studies
