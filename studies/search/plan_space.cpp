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

YamlNode scalar(std::string_view text) { return make_scalar(std::string(text), {}); }

/// Returns where the value stands; adds it where it doesn't.
std::int64_t index_of(std::vector<YamlNode>& values, const YamlNode& value) {
  const auto same = [text = to_yaml(value)](const YamlNode& other) { return to_yaml(other) == text; };
  const auto found = std::ranges::find_if(values, same);
  const auto index = found - values.begin();
  if (found == values.end()) values.push_back(value);
  return index;
}

/// Reads the axis's value as the scenario's reader of the field does.
template <typename T>
T read_value(SearchAxis axis, const YamlNode& value, T (*read)(const Reader&)) {
  const std::string_view path = path_of(axis), field = name_of(axis);
  YamlNode section = make_node(YamlNode::Kind::mapping, value.place);
  section.entries.push_back({std::string(field), std::string(field), value.place, value});
  return read(Reader(section, std::string(path.substr(0, path.find('.'))), {field}));
}

template <typename T>
std::vector<T> read_values(SearchAxis axis, const PlanChoices& choices, T (*read)(const Reader&)) {
  std::vector<T> values;
  for (const YamlNode& value : choices.of(axis)) values.push_back(read_value(axis, value, read));
  return values;
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

std::vector<std::int64_t> counted(std::size_t size) {
  std::vector<std::int64_t> indices(size);
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
  if (!own.pipeline_layout.empty()) {
    p.pipeline_layout = own.pipeline_layout;
    p.first_stage_layers = p.last_stage_layers = 0;
    if (meets(trial, Sizes::layers)) return true;
    p.pipeline_layout.clear();
  }
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
  choose_among(SearchAxis::schedule, all_schedules(), scalar(name_of(ScheduleKind::one_f_one_b)));
  choose_among(SearchAxis::recompute, {usual_recomputes.begin(), usual_recomputes.end()},
               scalar(name_in(recompute_names, no_recompute)));
  choose_among(SearchAxis::placement, {}, scalar(name_in(placement_names, RankPlacement::Kind::packed)));
  const Scenario& scenario = spec.scenario;
  choose_among(SearchAxis::order, {}, write_order(scenario.parallelism.order));
  if (!choices_.is_stated[static_cast<std::size_t>(SearchAxis::order)]) {
    choices_.of(SearchAxis::order).push_back(write_order(exchanged(scenario.parallelism.order, Axis::dp, Axis::pp)));
    free_[static_cast<std::size_t>(SearchAxis::order)] = counted(2);
  }

  const ParallelismSpec& p = scenario.parallelism;
  choices_.schedules = read_values(SearchAxis::schedule, choices_, read_schedule);
  choices_.recomputes = read_values(SearchAxis::recompute, choices_, read_recompute);
  choices_.orders = read_values(SearchAxis::order, choices_, read_order);
  choices_.placements = read_values(SearchAxis::placement, choices_, read_placement);
  if (const std::int64_t every = scenario.training.recompute.every; every > 0)  // the scenario's recompute_every
    for (RecomputeSpec& recompute : choices_.recomputes)
      if (recompute.every > 0) {
        recompute.every = every;
        recompute.segment = scenario.training.recompute.segment;
      }

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
  own_.has_layout = p.pipeline_layout.empty() ? 0 : 1;
}

/// Without a list of its own, an axis takes the defaults and what the scenario has.
void PlanSpace::choose_among(SearchAxis axis, const std::vector<std::string_view>& defaults, const YamlNode& own) {
  std::vector<YamlNode>& texts = choices_.of(axis);
  texts = spec_.axis(axis).values;
  const std::size_t listed = texts.size();
  if (listed == 0)
    for (const std::string_view name : defaults) texts.push_back(scalar(name));
  const YamlNode* stated = find_path(spec_.document, path_of(axis));
  own_.*field_of(axis) = index_of(texts, stated == nullptr ? own : *stated);
  choices_.is_stated[static_cast<std::size_t>(axis)] = listed > 0;
  free_[static_cast<std::size_t>(axis)] = counted(listed == 0 ? texts.size() : listed);
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

std::vector<std::int64_t> PlanSpace::zeros() const {
  std::vector<std::int64_t> values;
  for (const YamlNode& value : spec_.axis(SearchAxis::zero).values) values.push_back(std::stoll(value.text));
  return values.empty() ? std::vector<std::int64_t>{0, 1, 2, 3} : values;
}

std::vector<std::int64_t> PlanSpace::sps(Scenario& trial) const {
  std::vector<std::int64_t> values;
  for (const YamlNode& value : spec_.axis(SearchAxis::sp).values) values.push_back(value.text == "true" ? 1 : 0);
  if (values.empty()) values = {0, 1};
  if (trial.parallelism.tp == 1) values = {0};
  std::erase_if(values, [&](std::int64_t sp) {
    trial.parallelism.sp = sp != 0;
    return !meets(trial, Sizes::split);
  });
  return values;
}

std::vector<std::int64_t> PlanSpace::schedules(Scenario& trial) const {
  const auto kind = [&](std::int64_t index) { return choices_.schedules[static_cast<std::size_t>(index)]; };
  std::vector<std::int64_t> found = free(SearchAxis::schedule);
  std::erase_if(found, [&](std::int64_t index) {
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

/// Exchanging dp and pp changes nothing but numbers of ranks where neither shares a node with anything, and no switch is short of
/// bandwidth.
bool PlanSpace::order_matters(const Plan& plan) const {
  if (choices_.is_stated[static_cast<std::size_t>(SearchAxis::order)]) return true;
  const ClusterSpec& cluster = spec_.scenario.cluster;
  if (plan.dp == 1 || plan.pp == 1 || plan.gpus <= cluster.gpus_per_node) return false;
  if (cluster.fabric.is_oversubscribed()) return true;
  const Mesh mesh(scenario_of(plan, choices_, spec_.scenario).parallelism);
  return std::min(mesh.stride(Axis::dp), mesh.stride(Axis::pp)) < cluster.gpus_per_node;
}

/// The axes that say nothing of who has which GPU.
bool PlanSpace::visit_mesh(Plan plan, const std::vector<std::int64_t>& sps, Scenario& trial,
                           const std::function<bool(const Plan&)>& visit) const {
  const std::int64_t batch = trial.training.global_batch;
  const bool one_owner = plan.dp * plan.cp == 1 && trial.model.moe.experts == 0;
  std::vector<std::int64_t> zero_values = zeros();
  if (one_owner) zero_values.resize(1);
  for (const std::int64_t vpp : sizes(SearchAxis::vpp, std::max<std::int64_t>(1, (trial.model.layers + 2) / plan.pp))) {
    plan.vpp = trial.parallelism.vpp = vpp;
    if (!split_layers(trial, spec_.scenario.parallelism)) continue;
    plan.first_stage_layers = trial.parallelism.first_stage_layers;
    plan.last_stage_layers = trial.parallelism.last_stage_layers;
    plan.has_layout = trial.parallelism.pipeline_layout.empty() ? 0 : 1;
    for (const std::int64_t schedule : schedules(trial)) {
      plan.schedule = schedule;
      trial.training.schedule = choices_.schedules[static_cast<std::size_t>(schedule)];
      for (const std::int64_t micro_batch : sizes(SearchAxis::micro_batch, batch)) {
        plan.micro_batch = trial.training.micro_batch = micro_batch;
        if (!meets(trial, Sizes::batch)) continue;
        for (const std::int64_t zero : zero_values) {
          plan.zero = zero;
          for (const std::int64_t sp : sps) {
            plan.sp = sp;
            for (const std::int64_t recompute : free(SearchAxis::recompute)) {
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
        const std::vector<std::int64_t> free_sps = sps(trial);
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
              for (const std::int64_t order : free(SearchAxis::order)) {
                plan.order = order;
                if (order != own_.order && !order_matters(plan)) continue;
                for (const std::int64_t placement : free(SearchAxis::placement)) {
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
  for (const SearchAxis axis : search_axes) names.emplace_back(name_of(axis));
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
      return static_cast<std::int64_t>(found - values.begin());
    };
    if (field.key == "gpus") {
      plan.gpus = size();
      continue;
    }
    const auto axis = static_cast<SearchAxis>(known - names.begin());
    dp_is_given |= axis == SearchAxis::dp;
    if (axis == SearchAxis::sp)
      plan.sp = Reader(fields, "plan", keys).boolean(field.key) ? 1 : 0;
    else
      plan.*field_of(axis) = choices_.of(axis).empty() ? size() : choose(choices_.of(axis));
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
    plan.has_layout = trial.parallelism.pipeline_layout.empty() ? 0 : 1;
  } else {
    plan.first_stage_layers = plan.last_stage_layers = plan.has_layout = 0;
  }
  return plan;
}

}  // namespace tandem::studies
