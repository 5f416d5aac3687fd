#include "studies/diff/difference.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "studies/kineto/traced_result.h"

namespace tandem::studies {
namespace {

struct NamedTime {
  std::string name;
  Seconds time = 0;
};

/// Adds the parts that the step and each of its stages have alike, in the order of the JSON result.
std::vector<NamedTime> with_waiting(std::vector<NamedTime> times, const TimeParts& parts) {
  for (const Axis axis : communication_axes) times.push_back({"exposed " + std::string(name_of(axis)), parts.exposed_on(axis)});
  // Of a trace, which does not tell what communication is for.
  if (parts.exposed_on(Axis::none) > 0) times.push_back({"exposed communication", parts.exposed_on(Axis::none)});
  times.push_back({"bubble", parts.bubble});
  times.push_back({"optimizer", parts.optimizer()});
  return times;
}

std::vector<NamedTime> parts_of(const StepResult& step) { return with_waiting({{"compute", step.parts.compute()}}, step.parts); }

std::vector<NamedTime> parts_of(const StageTime& stage) {
  const TimeParts& parts = stage.parts;
  return with_waiting({{"forward", parts.in_phase(Phase::forward)},
                       {"backward input", parts.in_phase(Phase::backward_input)},
                       {"backward weight", parts.in_phase(Phase::backward_weight)},
                       {"recompute", parts.in_phase(Phase::recompute)}},
                      parts);
}

/// Returns the times of the kinds of tasks by name and phase: "gemm forward", "all_reduce (tp) backward-input".
std::vector<NamedTime> kinds_of(const StepResult& step) {
  std::vector<NamedTime> kinds;
  for (const KindTime& kind : step.kinds) {
    const std::string name = kind.name + " " + std::string(name_of(kind.phase));
    const auto same = std::ranges::find(kinds, name, &NamedTime::name);
    if (same == kinds.end())
      kinds.push_back({name, kind.time});
    else
      same->time += kind.time;
  }
  return kinds;
}

/// Matches times by name: those of `a` in their order, then those that `b` alone has.
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

std::vector<StageDifference> matched_stages(const StepResult& a, const StepResult& b) {
  std::vector<StageDifference> stages;
  if (a.stage_times.empty() || b.stage_times.empty()) return stages;
  const auto parts = [](const StepResult& step, std::size_t stage) {
    return stage < step.stage_times.size() ? parts_of(step.stage_times[stage]) : std::vector<NamedTime>();
  };
  for (std::size_t stage = 0; stage < std::max(a.stage_times.size(), b.stage_times.size()); ++stage)
    stages.push_back({stage, matched(parts(a, stage), parts(b, stage))});
  return stages;
}

std::vector<MemoryDifference> matched_memory(const StepResult& a, const StepResult& b) {
  std::vector<MemoryDifference> stages;
  if (is_traced(a) || is_traced(b)) return stages;
  const auto peak = [](const StepResult& step, std::size_t stage) {
    return stage < step.stages.size() ? std::optional(step.stages[stage].peak()) : std::nullopt;
  };
  for (std::size_t stage = 0; stage < std::max(a.stages.size(), b.stages.size()); ++stage)
    stages.push_back({stage, peak(a, stage), peak(b, stage)});
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

Json json_of(const NamedResult& result) { return {{"name", result.name}, {"step_time_s", result.step.step_time}}; }

}  // namespace

bool ResultDifference::is_none() const {
  const auto none = [](const std::vector<Difference>& differences) {
    return std::ranges::all_of(differences, &Difference::is_none);
  };
  return a.step.step_time == b.step.step_time && none(parts) && none(kinds) &&
         std::ranges::all_of(stages, none, &StageDifference::parts) && std::ranges::all_of(memory, &MemoryDifference::is_none);
}

ResultDifference difference_of(NamedResult a, NamedResult b) {
  ResultDifference difference{
      .a = std::move(a), .b = std::move(b), .parts = {}, .kinds = {}, .axes = {}, .stages = {}, .memory = {}};
  const StepResult &from = difference.a.step, &to = difference.b.step;
  difference.parts = matched(parts_of(from), parts_of(to));
  difference.axes = axes_of(difference.parts);
  difference.stages = matched_stages(from, to);
  if (!from.kinds.empty() && !to.kinds.empty()) difference.kinds = matched(kinds_of(from), kinds_of(to));
  std::ranges::stable_sort(difference.kinds, std::greater<>(), [](const Difference& kind) { return std::abs(kind.change()); });
  difference.memory = matched_memory(from, to);
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
