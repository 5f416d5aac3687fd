#include "studies/search/search_json.h"

#include <nlohmann/json.hpp>

#include "studies/runner/flat_json.h"

namespace tandem::studies {
namespace {

using Json = nlohmann::ordered_json;

Json as_json(std::monostate) { return nullptr; }
template <typename T>
Json as_json(const T& cell) {
  return cell;
}

/// The value as a scenario has it: a quoted scalar is text, any other one what it reads like.
Json json_of(const YamlNode& value) {
  Json json;
  switch (value.kind) {
    case YamlNode::Kind::null:
      return nullptr;
    case YamlNode::Kind::scalar:
      if (!value.quoted && (value.text == "true" || value.text == "false")) return value.text == "true";
      return std::visit([](const auto& cell) { return as_json(cell); }, cell_of(value));
    case YamlNode::Kind::sequence:
      json = Json::array();
      for (const YamlNode& item : value.items) json.push_back(json_of(item));
      return json;
    case YamlNode::Kind::mapping:
      json = Json::object();
      for (const YamlNode::Entry& entry : value.entries) json[entry.key] = json_of(entry.value);
      return json;
  }
  return json;
}

/// By path, as in the scenario.
Json plan_json(const Plan& plan, const PlanChoices& choices, const SearchSpec& spec) {
  Json json = Json::object();
  for (const Assignment& assignment : assignments_of(plan, choices, spec)) {
    if (assignment.value.kind != YamlNode::Kind::null) json[assignment.path] = json_of(assignment.value);
  }
  return json;
}

std::string_view name_of(SearchObjective objective) {
  switch (objective) {
    case SearchObjective::step_time:
      return "step-time";
    case SearchObjective::tokens_per_s_per_gpu:
      return "tokens-per-s-per-gpu";
    case SearchObjective::cost_per_million_tokens:
      return "cost-per-million-tokens";
  }
  return {};
}

Json rated_json(const RatedPlan& rated, const PlanChoices& choices, const SearchSpec& spec) {
  const StepResult& step = rated.step;
  Json json = {{"plan", to_text(rated.plan, choices)},
               {"fields", plan_json(rated.plan, choices, spec)},
               {"step_time_s", step.step_time},
               {"bound_s", rated.bound},
               {"tokens_per_s_per_gpu", static_cast<double>(step.tokens) / step.step_time / static_cast<double>(step.gpus)}};
  if (spec.objective == SearchObjective::cost_per_million_tokens) json["cost_per_million_tokens"] = rated.score;
  json["time_s"] = to_json_object(step.parts);
  json["memory"] = {{"peak_bytes", step.peak_memory()}, {"limit_bytes", memory_limit(spec)}};
  return json;
}

Json all_json(const std::vector<RatedPlan>& plans, const PlanChoices& choices, const SearchSpec& spec) {
  Json json = Json::array();
  for (const RatedPlan& rated : plans) json.push_back(rated_json(rated, choices, spec));
  return json;
}

Json shortfall_json(const Shortfall& lacks) {
  return {{"memory_bytes", lacks.memory}, {"bubble", lacks.bubble}, {"exposed", lacks.exposed}};
}

Json explanation_json(const Explanation& e, const PlanChoices& choices, const SearchSpec& spec) {
  Json json = {{"plan", to_text(e.plan, choices)}, {"is_among", e.is_among}, {"refusal", nullptr}};
  if (!e.refusal.empty()) {
    json["refusal"] = e.refusal;
    return json;
  }
  json["bounds"] = {{"step_time_s", e.time_bound}, {"peak_bytes", e.memory.peak}, {"fullest_stage", e.memory.stage}};
  if (!e.failure.empty()) json["failure"] = e.failure;
  if (e.rated) {
    json["simulated"] = rated_json(*e.rated, choices, spec);
    json["lacks"] = shortfall_json(e.lacks);
  }
  return json;
}

}  // namespace

Json to_json_object(const RatedPlan& rated, const SearchSpec& spec, const PlanChoices& choices) {
  return rated_json(rated, choices, spec);
}

std::string to_json(const SearchResult& r, const Explanation* explanation, const SearchSpec& spec, const PlanChoices& choices,
                    Seconds wall) {
  Json json = {{"scenario", spec.name},
               {"gpus", spec.gpus},
               {"objective", name_of(spec.objective)},
               {"best", all_json(r.best, choices, spec)},
               {"best_is_proven", r.best_is_proven},
               {"proven", r.proven},
               {"gap", r.gap ? Json(*r.gap) : Json(nullptr)},
               {"pareto", all_json(r.pareto, choices, spec)}};
  Json rules = Json::array();
  for (const BrokenRule& rule : r.rules) {
    Json best = nullptr;
    if (rule.best) best = rated_json(*rule.best, choices, spec);
    rules.push_back({{"rule", rule.name}, {"plans", rule.plans}, {"best", best}, {"is_proven", rule.is_proven}});
  }
  json["rules_of_thumb"] = rules;
  json["own"] = nullptr;
  if (r.own) {
    json["own"] = rated_json(*r.own, choices, spec);
    json["own"]["is_among"] = r.own_is_among;
    json["own"]["lacks"] = shortfall_json(shortfall(spec, r.own->step));
  }
  if (r.nearest) {
    json["nearest"] = rated_json(*r.nearest, choices, spec);
    json["nearest"]["lacks"] = shortfall_json(shortfall(spec, r.nearest->step));
  }
  if (explanation != nullptr) json["explained"] = explanation_json(*explanation, choices, spec);
  const SearchCounts& c = r.counts;
  json["counts"] = {{"plans", c.plans},         {"without_memory", c.without_memory},
                    {"too_slow", c.too_slow},   {"left", c.left},
                    {"refined", c.refined},     {"layer_costs", c.passes},
                    {"simulated", c.simulated}, {"refused", c.refused},
                    {"failed", c.failed}};
  json["run"] = {{"bounding_s", r.bounding}, {"wall_s", wall}, {"ended_early", r.ended_early}};
  return json.dump(1) + "\n";
}

}  // namespace tandem::studies
