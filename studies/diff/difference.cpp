#include "studies/diff/difference.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace tandem::studies {
namespace {

/// By name: what `a` has in its order, then what `b` alone has.
std::vector<Difference> matched(const std::vector<NamedTime>& a, const std::vector<NamedTime>& b) {
  std::vector<Difference> differences;
  for (const NamedTime& time : a) differences.push_back({time.name, time.time, std::nullopt});
  for (const NamedTime& time : b) {
    const auto same = std::ranges::find(differences, time.name, &Difference::name);
    if (same == differences.end())
      differences.push_back({time.name, std::nullopt, time.time});
    else
      same->b = time.time;
  }
  return differences;
}

template <typename T>
T element_or(const std::vector<T>& list, std::size_t i, T otherwise) {
  return i < list.size() ? list[i] : otherwise;
}

std::vector<StageDifference> matched_stages(const ComparableResult& a, const ComparableResult& b) {
  std::vector<StageDifference> stages;
  if (!a.stages || !b.stages) return stages;
  for (std::size_t stage = 0; stage < std::max(a.stages->size(), b.stages->size()); ++stage)
    stages.push_back({stage, matched(element_or(*a.stages, stage, {}), element_or(*b.stages, stage, {}))});
  return stages;
}

std::vector<Difference> axes_of(const std::vector<Difference>& parts) {
  const std::string exposed = "exposed ";
  std::vector<Difference> axes;
  for (const Difference& part : parts)
    if (part.name.starts_with(exposed)) axes.push_back({part.name.substr(exposed.size()), part.a, part.b});
  return axes;
}

using Json = nlohmann::ordered_json;

template <typename T>
Json json_of(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json json_of(const std::vector<Difference>& differences) {
  Json list = Json::array();
  for (const Difference& d : differences) list.push_back({{"name", d.name}, {"a_s", json_of(d.a)}, {"b_s", json_of(d.b)}});
  return list;
}

Json json_of(const ComparableResult& result) { return {{"name", result.name}, {"step_time_s", result.step_time}}; }

}  // namespace

bool ResultDifference::is_none() const {
  const auto none = [](const std::vector<Difference>& differences) {
    return std::ranges::all_of(differences, &Difference::is_none);
  };
  return a.step_time == b.step_time && none(parts) && none(kinds) && std::ranges::all_of(stages, none, &StageDifference::parts) &&
         a.memory == b.memory;
}

ResultDifference difference_of(ComparableResult a, ComparableResult b) {
  ResultDifference difference{
      .a = std::move(a), .b = std::move(b), .parts = {}, .kinds = {}, .axes = {}, .stages = {}, .memory = {}};
  const ComparableResult &from = difference.a, &to = difference.b;
  difference.parts = matched(from.parts, to.parts);
  difference.axes = axes_of(difference.parts);
  difference.stages = matched_stages(from, to);
  if (from.kinds && to.kinds) difference.kinds = matched(*from.kinds, *to.kinds);
  std::ranges::stable_sort(difference.kinds, std::greater<>(), [](const Difference& kind) { return std::abs(kind.change()); });
  for (std::size_t stage = 0; stage < std::max(from.memory.size(), to.memory.size()); ++stage) {
    const auto memory_of = [stage](const ComparableResult& result) {
      return stage < result.memory.size() ? std::optional(result.memory[stage]) : std::nullopt;
    };
    difference.memory.push_back({stage, memory_of(from), memory_of(to)});
  }
  return difference;
}

Json to_json_object(const ResultDifference& difference) {
  Json stages = Json::array(), memory = Json::array();
  for (const StageDifference& stage : difference.stages)
    stages.push_back({{"stage", stage.stage}, {"parts", json_of(stage.parts)}});
  for (const MemoryDifference& stage : difference.memory)
    memory.push_back({{"stage", stage.stage}, {"a_bytes", json_of(stage.a)}, {"b_bytes", json_of(stage.b)}});
  return {{"kind", "diff"},
          {"a", json_of(difference.a)},
          {"b", json_of(difference.b)},
          {"parts", json_of(difference.parts)},
          {"kinds", json_of(difference.kinds)},
          {"axes", json_of(difference.axes)},
          {"stages", stages},
          {"memory", memory}};
}

}  // namespace tandem::studies
