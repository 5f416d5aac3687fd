#include "studies/search/plan_space.h"

#include <algorithm>
#include <numeric>

#include "runtime/base/divide_up.h"
#include "runtime/base/nearest.h"
#include "scenarios/checks/checks.h"
#include "scenarios/mesh/mesh.h"
#include "scenarios/mesh/rank_placement.h"
#include "scenarios/reading/document.h"
#include "scenarios/reading/sections.h"
#include "scenarios/schedules/schedule_table.h"
#include "scenarios/spec/names.h"

namespace tandem::studies {
namespace {

std::vector<std::string_view> all_schedules() {
  std::vector<std::string_view> names;
  for (const ScheduleTraits& traits : schedule_table()) names.push_back(traits.name);
  return names;
}

/// The field's value in the scenario, or its default.
YamlNode own_value(const SearchSpec& spec, SearchAxis axis, std::string_view otherwise) {
  const YamlNode* stated = find_path(spec.document, path_of(axis));
  return stated == nullptr ? make_scalar(std::string(otherwise), {}) : *stated;
}

/// Adds the value unless it is there; returns where it stands.
std::int32_t place_of_value(std::vector<YamlNode>& values, const YamlNode& value) {
  const auto same = [text = to_yaml(value)](const YamlNode& other) { return to_yaml(other) == text; };
  const auto found = std::ranges::find_if(values, same);
  const auto place = static_cast<std::int32_t>(found - values.begin());
  if (found == values.end()) values.push_back(value);
  return place;
}

std::vector<YamlNode> values_or(const SearchAxisSpec& axis, const std::vector<std::string_view>& defaults) {
  if (!axis.values.empty()) return axis.values;
  std::vector<YamlNode> values;
  for (const std::string_view name : defaults) values.push_back(make_scalar(std::string(name), {}));
  return values;
}

YamlNode section_with(const std::string& field, const YamlNode& value) {
  YamlNode section = make_node(YamlNode::Kind::mapping, {});
  section.entries.push_back({field, field, {}, value});
  return section;
}

TrainingSpec training_with(const SearchSpec& spec, const std::string& field, const YamlNode& value) {
  YamlNode section = section_with(field, value);
  for (const char* needed : {"sequence", "global_batch"}) section.entries.push_back({needed, needed, {}, make_scalar("1", {})});
  const YamlNode* every = find_path(spec.document, "training.recompute_every");
  const bool whole =
      field == "recompute" && value.kind == YamlNode::Kind::scalar && value.text == name_in(recompute_names, full_recompute);
  if (every != nullptr && whole) section.entries.push_back({"recompute_every", "recompute_every", {}, *every});
  return read_training(section);
}

/// Whether the scenario keeps the rules about these sizes.
bool meets(const Scenario& trial, Sizes sizes) {
  static const auto rules = [] {
    std::array<std::vector<const Rule*>, size_kinds> all;
    for (std::size_t i = 0; i < size_kinds; ++i) all[i] = rules_about(static_cast<Sizes>(i));
    return all;
  }();
  return std::ranges::all_of(rules[static_cast<std::size_t>(sizes)], [&](const Rule* rule) { return rule->holds(trial); });
}

std::vector<std::int32_t> counted(std::size_t size) {
  std::vector<std::int32_t> indices(size);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

/// Layers of the first and the last stage where the model's do not divide: all stages but these two get (layers + 2) / pp rounded
/// up, as if the embedding and the loss took a layer's place each, and they share what is left. None where too few are left.
std::optional<std::pair<std::int64_t, std::int64_t>> lighter_ends(const Scenario& scenario) {
  const std::int64_t pp = scenario.parallelism.pp, vpp = scenario.parallelism.vpp, layers = scenario.model.layers;
  if (pp == 1) return std::nullopt;
  const std::int64_t of_others = round_up(divide_up(layers + 2, pp), vpp);
  const std::int64_t left = layers - (pp - 2) * of_others;
  const std::int64_t first = round_up(divide_up(left, 2), vpp), last = left - first;
  if (left < 2 * vpp || last < vpp) return std::nullopt;
  return std::pair{first, last};
}

/// Lays the layers on the stages of `trial`: as its own plan has them if it has as many chunks, else evenly, else with lighter
/// ends. False where none of these is whole.
bool split_layers(Scenario& trial, const ParallelismSpec& own) {
  ParallelismSpec& p = trial.parallelism;
  const auto try_split = [&](std::int64_t first, std::int64_t last) {
    p.first_stage_layers = first;
    p.last_stage_layers = last;
    const bool uneven = first > 0 || last > 0;
    p.account_for_embedding = own.account_for_embedding && !uneven;
    p.account_for_loss = own.account_for_loss && !uneven;
    return meets(trial, Sizes::layers);
  };
  if (p.pp == own.pp && p.vpp == own.vpp && try_split(own.first_stage_layers, own.last_stage_layers)) return true;
  if (try_split(0, 0)) return true;
  const auto ends = lighter_ends(trial);
  return ends && try_split(ends->first, ends->second);
}

}  // namespace

PlanSpace::PlanSpace(const SearchSpec& spec) : spec_(spec) {
  choices_.schedule = values_or(spec.axis(SearchAxis::schedule), all_schedules());
  choices_.recompute = values_or(spec.axis(SearchAxis::recompute), {usual_recomputes.begin(), usual_recomputes.end()});
  choices_.order = spec.axis(SearchAxis::order).values;
  choices_.placement = spec.axis(SearchAxis::placement).values;
  free_schedules_ = counted(choices_.schedule.size());
  free_recomputes_ = counted(choices_.recompute.size());
  const auto order = own_value(spec, SearchAxis::order, "");
  YamlNode own_order = order;
  if (order.kind != YamlNode::Kind::sequence) {  // the default
    own_order = make_node(YamlNode::Kind::sequence, {});
    for (const Axis axis : mesh_axes) own_order.items.push_back(make_scalar(std::string(name_of(axis)), {}));
  }
  const Scenario& scenario = spec.scenario;
  const ParallelismSpec& p = scenario.parallelism;
  own_.schedule = place_of_value(choices_.schedule, own_value(spec, SearchAxis::schedule, name_of(ScheduleKind::one_f_one_b)));
  own_.recompute =
      place_of_value(choices_.recompute, own_value(spec, SearchAxis::recompute, name_in(recompute_names, no_recompute)));
  own_.order = place_of_value(choices_.order, own_order);
  own_.placement = place_of_value(choices_.placement,
                                  own_value(spec, SearchAxis::placement, name_in(placement_names, RankPlacement::Kind::packed)));
  if (!spec.axis(SearchAxis::recompute).is_stated()) free_recomputes_ = counted(choices_.recompute.size());
  const auto free_of = [](const SearchAxisSpec& axis, std::int32_t own) {
    return axis.values.empty() ? std::vector{own} : counted(axis.values.size());
  };
  free_orders_ = free_of(spec.axis(SearchAxis::order), own_.order);
  free_placements_ = free_of(spec.axis(SearchAxis::placement), own_.placement);

  for (const YamlNode& value : choices_.schedule) choices_.schedules.push_back(training_with(spec, "schedule", value).schedule);
  for (const YamlNode& value : choices_.recompute)
    choices_.recomputes.push_back(training_with(spec, "recompute", value).recompute);
  for (const YamlNode& value : choices_.order) choices_.orders.push_back(read_parallelism(section_with("order", value)).order);
  for (const YamlNode& value : choices_.placement)
    choices_.placements.push_back(read_parallelism(section_with("placement", value)).placement);

  own_.gpus = scenario.cluster.gpus;
  own_.tp = p.tp;
  own_.pp = p.pp;
  own_.vpp = p.vpp;
  own_.cp = p.cp;
  own_.ep = p.ep;
  own_.etp = p.etp;
  own_.dp = p.dp;
  own_.micro_batch = scenario.training.micro_batch;
  own_.zero = p.zero;
  own_.sp = p.sp ? 1 : 0;
  own_.first_stage_layers = p.first_stage_layers;
  own_.last_stage_layers = p.last_stage_layers;
}

std::vector<std::int64_t> PlanSpace::sizes(SearchAxis axis, std::int64_t most) const {
  std::vector<std::int64_t> values;
  for (const YamlNode& value : spec_.axis(axis).values) {
    const std::int64_t size = std::stoll(value.text);
    if (size <= most) values.push_back(size);
  }
  // Tiles of attention have 128 queries; a ring's hops cost their latency each, and a bound of its time as many tasks.
  constexpr std::int64_t least_tokens = 128, longest_ring = 64;
  if (axis == SearchAxis::cp)
    most = std::min({most, longest_ring, std::max<std::int64_t>(1, spec_.scenario.training.sequence / least_tokens)});
  if (spec_.axis(axis).values.empty())
    for (std::int64_t size = 1; size <= most; size *= 2) values.push_back(size);
  return values;
}

std::vector<std::int32_t> PlanSpace::zeros() const {
  std::vector<std::int32_t> values;
  for (const YamlNode& value : spec_.axis(SearchAxis::zero).values) values.push_back(std::stoi(value.text));
  return values.empty() ? std::vector{0, 1, 2, 3} : values;
}

std::vector<std::int32_t> PlanSpace::sps(Scenario& trial) const {
  std::vector<std::int32_t> values;
  for (const YamlNode& value : spec_.axis(SearchAxis::sp).values) values.push_back(boolean_of(value, "search.axes.sp") ? 1 : 0);
  if (values.empty()) values = {0, 1};
  if (trial.parallelism.tp == 1) values = {0};
  std::erase_if(values, [&](std::int32_t sp) {
    trial.parallelism.sp = sp != 0;
    return !meets(trial, Sizes::split);
  });
  return values;
}

std::vector<std::int32_t> PlanSpace::schedules(Scenario& trial) const {
  const auto kind = [&](std::int32_t index) { return choices_.schedules[static_cast<std::size_t>(index)]; };
  std::vector<std::int32_t> found = free_schedules_;
  std::erase_if(found, [&](std::int32_t index) {
    trial.training.schedule = kind(index);
    return !meets(trial, Sizes::schedule);
  });
  if (trial.parallelism.pp > 1 || found.size() < 2) return found;
  // Without a pipeline all are the same but for the memory of those that hold the whole batch.
  const auto plain = std::ranges::find(found, ScheduleKind::one_f_one_b, kind);
  return {plain == found.end() ? found.front() : *plain};
}

bool PlanSpace::tp_is_in_node(const Plan& plan) const {
  if (plan.tp == 1) return true;
  const Scenario scenario = scenario_of(plan, choices_, spec_.scenario);
  const Mesh mesh(scenario.parallelism);
  const std::int64_t node = scenario.cluster.gpus_per_node;
  if (scenario.parallelism.placement.is_packed()) return node % (mesh.stride(Axis::tp) * plan.tp) == 0 || node >= plan.gpus;
  const RankPlaces places(scenario);
  for (std::uint32_t rank = 0; rank < mesh.size(); ++rank)
    for (const std::uint32_t member : mesh.members(rank, {Axis::tp}))
      if (places.node(member) != places.node(rank)) return false;
  return true;
}

/// The axes that say nothing of who has which GPU.
bool PlanSpace::visit_mesh(Plan plan, const std::vector<std::int32_t>& sps, Scenario& trial,
                           const std::function<bool(const Plan&)>& visit) const {
  const std::int64_t batch = trial.training.global_batch;
  const bool one_owner = plan.dp * plan.cp == 1 && trial.model.moe.experts == 0;
  std::vector<std::int32_t> zero_values = zeros();
  if (one_owner) zero_values.resize(1);
  for (const std::int64_t vpp : sizes(SearchAxis::vpp, std::max<std::int64_t>(1, (trial.model.layers + 2) / plan.pp))) {
    plan.vpp = trial.parallelism.vpp = vpp;
    if (!split_layers(trial, spec_.scenario.parallelism)) continue;
    plan.first_stage_layers = trial.parallelism.first_stage_layers;
    plan.last_stage_layers = trial.parallelism.last_stage_layers;
    for (const std::int32_t schedule : schedules(trial)) {
      plan.schedule = schedule;
      trial.training.schedule = choices_.schedules[static_cast<std::size_t>(schedule)];
      for (const std::int64_t micro_batch : sizes(SearchAxis::micro_batch, batch)) {
        plan.micro_batch = trial.training.micro_batch = micro_batch;
        if (!meets(trial, Sizes::batch)) continue;
        for (const std::int32_t zero : zero_values) {
          plan.zero = zero;
          for (const std::int32_t sp : sps) {
            plan.sp = sp;
            for (const std::int32_t recompute : free_recomputes_) {
              plan.recompute = recompute;
              if (!visit(plan)) return false;
            }
          }
        }
      }
    }
  }
  return true;
}

void PlanSpace::for_each(const std::function<bool(const Plan&)>& visit) const {
  Scenario trial = spec_.scenario;  // with what is chosen so far
  ParallelismSpec& p = trial.parallelism;
  const MoeSpec& moe = trial.model.moe;
  for (const std::int64_t gpus : spec_.gpus) {
    trial.cluster.gpus = gpus;
    if (!meets(trial, Sizes::gpus)) continue;
    const std::vector<std::int64_t> free_dp = sizes(SearchAxis::dp, gpus);
    for (const std::int64_t tp : sizes(SearchAxis::tp, gpus)) {
      for (const std::int64_t cp : sizes(SearchAxis::cp, gpus / tp)) {
        p.tp = tp;
        p.cp = cp;
        const std::vector<std::int32_t> free_sps = sps(trial);
        if (free_sps.empty()) continue;
        for (const std::int64_t pp : sizes(SearchAxis::pp, std::min(gpus / tp / cp, trial.model.layers + 2))) {
          for (const std::int64_t ep : sizes(SearchAxis::ep, std::max<std::int64_t>(1, moe.experts))) {
            for (const std::int64_t etp : sizes(SearchAxis::etp, moe.experts > 0 ? moe.ffn : 1)) {
              const std::int64_t replica = tp * cp * pp * (p.own_expert_axis ? ep : 1);
              if (gpus % replica != 0) continue;
              Plan plan;
              plan.gpus = gpus;
              plan.tp = tp;
              plan.cp = cp;
              plan.pp = p.pp = pp;
              plan.ep = p.ep = ep;
              plan.etp = p.etp = etp;
              plan.dp = p.dp = gpus / replica;
              const bool any_dp = spec_.axis(SearchAxis::dp).values.empty() && !spec_.axis(SearchAxis::dp).is_stated();
              if (!any_dp && std::ranges::find(free_dp, plan.dp) == free_dp.end()) continue;
              if (!meets(trial, Sizes::experts)) continue;
              for (const std::int32_t order : free_orders_) {
                plan.order = order;
                for (const std::int32_t placement : free_placements_) {
                  plan.placement = placement;
                  if (spec_.constraints.tp_in_node && !tp_is_in_node(plan)) continue;
                  if (!visit_mesh(plan, free_sps, trial, visit)) return;
                }
              }
            }
          }
        }
      }
    }
  }
}

std::vector<Plan> PlanSpace::all() const {
  std::vector<Plan> plans;
  for_each([&](const Plan& plan) {
    plans.push_back(plan);
    return plans.size() <= most_plans;
  });
  if (plans.size() > most_plans)
    throw InputError({.file = spec_.file}, "the search has more than " + grouped(most_plans) + " plans, expected fewer values");
  std::ranges::sort(plans);
  return plans;
}

bool PlanSpace::contains(const Plan& plan) const {
  bool found = false;
  for_each([&](const Plan& other) { return !(found = other == plan); });
  return found;
}

Plan PlanSpace::parse(const std::string& text) const {
  const Place place{.file = "--explain " + text};
  // A list of values may hold commas of its own, so the text becomes a mapping of YAML.
  std::string yaml;
  for (const char c : text) yaml += c == '=' ? std::string(": ") : std::string(1, c);
  const YamlNode fields = parse_yaml("{" + yaml + "}", place.file, Lines::none);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < search_axis_count; ++i) names.emplace_back(name_of(static_cast<SearchAxis>(i)));
  std::vector<std::string_view> keys(names.begin(), names.end());
  keys.emplace_back("gpus");
  Plan plan = own_;
  bool dp_is_given = false;
  for (const YamlNode::Entry& field : fields.entries) {
    const auto known = std::ranges::find(names, field.key);
    if (known == names.end() && field.key != "gpus")
      throw InputError(place, excerpt(field.key) + " is no axis of a plan" + suggestion(field.key, names));
    if (field.value.kind == YamlNode::Kind::null)
      throw InputError(place, field.key + " has no value, expected axis=value, such as tp=4,pp=8");
    const auto size = [&] {
      return Reader(fields, "plan", keys).integer(field.key, {field.key == "zero" ? 0 : 1, field.key == "zero" ? 3 : max_gpus});
    };
    const auto choose = [&](const std::vector<YamlNode>& values) {
      const auto same = [text = to_yaml(field.value)](const YamlNode& value) { return to_yaml(value) == text; };
      const auto found = std::ranges::find_if(values, same);
      std::vector<std::string> texts;
      for (const YamlNode& value : values) texts.push_back(to_yaml(value));
      if (found == values.end())
        throw InputError(place, field.key + " is " + excerpt(to_yaml(field.value)) +
                                    ", which the search does not look at; expected one of: " + joined(texts));
      return static_cast<std::int32_t>(found - values.begin());
    };
    if (field.key == "gpus") {
      plan.gpus = size();
      continue;
    }
    switch (static_cast<SearchAxis>(known - names.begin())) {
      case SearchAxis::tp:
        plan.tp = size();
        break;
      case SearchAxis::pp:
        plan.pp = size();
        break;
      case SearchAxis::vpp:
        plan.vpp = size();
        break;
      case SearchAxis::cp:
        plan.cp = size();
        break;
      case SearchAxis::ep:
        plan.ep = size();
        break;
      case SearchAxis::etp:
        plan.etp = size();
        break;
      case SearchAxis::dp:
        plan.dp = size();
        dp_is_given = true;
        break;
      case SearchAxis::micro_batch:
        plan.micro_batch = size();
        break;
      case SearchAxis::zero:
        plan.zero = static_cast<std::int32_t>(size());
        break;
      case SearchAxis::sp:
        plan.sp = boolean_of(field.value, "plan.sp") ? 1 : 0;
        break;
      case SearchAxis::schedule:
        plan.schedule = choose(choices_.schedule);
        break;
      case SearchAxis::recompute:
        plan.recompute = choose(choices_.recompute);
        break;
      case SearchAxis::order:
        plan.order = choose(choices_.order);
        break;
      case SearchAxis::placement:
        plan.placement = choose(choices_.placement);
        break;
    }
  }
  if (plan.tp == 1) plan.sp = 0;
  const std::int64_t replica = plan.tp * plan.pp * plan.cp * (spec_.scenario.parallelism.own_expert_axis ? plan.ep : 1);
  if (!dp_is_given) plan.dp = std::max<std::int64_t>(1, plan.gpus / replica);
  Scenario trial = spec_.scenario;
  trial.parallelism.pp = plan.pp;
  trial.parallelism.vpp = plan.vpp;
  if (split_layers(trial, spec_.scenario.parallelism)) {
    plan.first_stage_layers = trial.parallelism.first_stage_layers;
    plan.last_stage_layers = trial.parallelism.last_stage_layers;
  } else {
    plan.first_stage_layers = plan.last_stage_layers = 0;
  }
  return plan;
}

}  // namespace tandem::studies
