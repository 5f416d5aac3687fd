#include <algorithm>

#include "runtime/base/nearest.h"
#include "scenarios/reading/document.h"
#include "studies/search/plan_space.h"

namespace tandem::studies {
namespace {

constexpr std::int64_t largest_tried = 131'072;  ///< GPUs, where their number does not matter

/// One thing that the search block demands.
struct Demand {
  std::string text;  ///< "search.axes.tp [16]"
  Place place;
  std::function<void(SearchSpec&)> drop;
};

std::vector<Demand> demands_of(const SearchSpec& spec) {
  std::vector<Demand> demands;
  for (std::size_t i = 0; i < search_axis_count; ++i) {
    const SearchAxisSpec& axis = spec.axes[i];
    if (!axis.is_stated()) continue;
    std::string values;
    for (const YamlNode& value : axis.values) values += (values.empty() ? "" : ", ") + to_yaml(value);
    demands.push_back({"search.axes." + std::string(name_of(static_cast<SearchAxis>(i))) + " " +
                           (values.empty() ? "powers-of-two" : "[" + values + "]"),
                       axis.place, [i](SearchSpec& s) { s.axes[i] = {}; }});
  }
  if (!spec.gpus_place.file.empty()) {
    std::vector<std::string> gpus;
    for (const std::int64_t number : spec.gpus) gpus.push_back(std::to_string(number));
    demands.push_back({"search.gpus " + joined(gpus), spec.gpus_place, [](SearchSpec& s) {
                         s.gpus = {s.scenario.cluster.gpus};
                         for (std::int64_t any = 1; any <= largest_tried; any *= 2) s.gpus.push_back(any);
                       }});
  }
  if (spec.constraints.tp_in_node)
    demands.push_back(
        {"search.constraints.tp_in_node with nodes of " + std::to_string(spec.scenario.cluster.gpus_per_node) + " GPUs",
         spec.tp_in_node_place, [](SearchSpec& s) { s.constraints.tp_in_node = false; }});
  return demands;
}

/// Whether no plan meets these demands, whatever becomes of the others.
bool are_impossible(const SearchSpec& spec, const std::vector<Demand>& demands, const std::vector<std::size_t>& kept) {
  SearchSpec relaxed = spec;
  for (std::size_t i = 0; i < demands.size(); ++i)
    if (std::ranges::find(kept, i) == kept.end()) demands[i].drop(relaxed);
  bool any = false;
  PlanSpace(relaxed).for_each([&](const Plan&) { return !(any = true); });
  return !any;
}

/// Leaves out one demand after the other that the rest is impossible without.
std::vector<std::size_t> needed(const SearchSpec& spec, const std::vector<Demand>& demands) {
  std::vector<std::size_t> kept(demands.size());
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = i;
  for (std::size_t i = 0; i < demands.size(); ++i) {
    std::vector<std::size_t> fewer = kept;
    std::erase(fewer, i);
    if (are_impossible(spec, demands, fewer)) kept = fewer;
  }
  return kept;
}

}  // namespace

void refuse_contradiction(const SearchSpec& spec) {
  const std::vector<Demand> demands = demands_of(spec);
  if (are_impossible(spec, demands, {}))
    throw InputError({.file = spec.file}, "no plan divides the scenario's model and batch over " +
                                              std::to_string(spec.gpus.front()) +
                                              " GPUs, expected another cluster.gpus or training.global_batch");
  for (std::size_t i = 0; i < demands.size(); ++i)
    if (are_impossible(spec, demands, {i}))
      throw InputError(demands[i].place, demands[i].text + " contradicts the scenario: its model, batch and " +
                                             std::to_string(spec.scenario.cluster.gpus) +
                                             " GPUs admit none of these; expected others, or the axis left out");
  for (std::size_t i = 0; i < demands.size(); ++i)
    for (std::size_t j = i + 1; j < demands.size(); ++j)
      if (are_impossible(spec, demands, {i, j}))
        throw InputError(demands[j].place, demands[i].text + " (" + demands[i].place.text() + ") and " + demands[j].text +
                                               " contradict each other: no plan meets both; expected one of them changed");
  std::vector<std::string> names;
  Place place;
  for (const std::size_t i : needed(spec, demands)) {
    names.push_back(demands[i].text);
    place = demands[i].place;
  }
  throw InputError(place, joined(names) + " contradict each other: no plan meets all; expected one of them changed");
}

}  // namespace tandem::studies
