#include "studies/kineto/against_simulation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/base/input_error.h"
#include "studies/step/simulated_step.h"

namespace tandem::studies {
namespace {

/// A lowered rank's part of a simulated step.
RankStep simulated_step_of(const SimulatedStep& simulated, RankIndex rank) {
  RankStep step{.rank = simulated.dag.ranks[rank].world_rank, .name = {}, .time = simulated.timeline.makespan(), .tasks = {}};
  for (TaskId id = 0; id < simulated.dag.tasks.size(); ++id) {
    const Task& task = simulated.dag.tasks[id];
    if (task.rank != rank) continue;
    const KernelFamily family = family_of(task);
    const bool communicates = family == KernelFamily::communication;
    step.tasks.push_back({.family = family,
                          .collective = communicates ? std::optional(task.op) : std::nullopt,
                          .axis = communicates ? task.axis : Axis::none,
                          .phase = task.phase,
                          .start = simulated.timeline.start[id],
                          .end = simulated.timeline.end[id]});
  }
  std::ranges::stable_sort(step.tasks, {}, &RankTask::start);
  return step;
}

/// How far the members of a group lie from its first, in ascending order: the same for all groups of an axis on a regular mesh.
std::vector<std::uint32_t> distances(std::vector<std::uint32_t> members) {
  std::ranges::sort(members);
  for (std::size_t i = members.size(); i-- > 0;) members[i] -= members.front();
  return members;
}

/// What a rank exchanges, by axis.
class Exchanges {
 public:
  Exchanges(const Dag& dag, RankIndex rank) {
    for (const Task& task : dag.tasks) {
      if (task.rank != rank || task.group == no_id) continue;
      const Communicator& communicator = dag.communicator_of(task);
      ++axes_[task.op][task.axis];
      ++groups_[{task.op, communicator.members.size()}][task.axis];
      ++patterns_[{task.op, distances(communicator.members)}][task.axis];
    }
  }

  Axis axis_of(OpKind op, const std::optional<RecordedCollective>& record) const {
    if (record && !record->ranks.empty())
      if (const Axis axis = most_of(patterns_, std::pair(op, distances(record->ranks))); axis != Axis::none) return axis;
    if (record && record->group_size > 0) return only_of(groups_, std::pair(op, static_cast<std::size_t>(record->group_size)));
    return only_of(axes_, op);
  }
  bool has(OpKind op) const { return axes_.contains(op); }

 private:
  using Counts = std::map<Axis, std::size_t>;
  std::map<OpKind, Counts> axes_;
  std::map<std::pair<OpKind, std::size_t>, Counts> groups_;
  std::map<std::pair<OpKind, std::vector<std::uint32_t>>, Counts> patterns_;

  template <typename Map>
  static Axis only_of(const Map& map, const typename Map::key_type& key) {
    const auto found = map.find(key);
    return found == map.end() || found->second.size() != 1 ? Axis::none : found->second.begin()->first;
  }
  /// Norms of gradients go through the groups of other axes.
  template <typename Map>
  static Axis most_of(const Map& map, const typename Map::key_type& key) {
    const auto found = map.find(key);
    if (found == map.end()) return Axis::none;
    return std::ranges::max_element(found->second, {}, [](const auto& count) { return count.second; })->first;
  }
};

/// NCCL runs messages of an all-to-all by the kernel that sends and receives.
void find_axes(const KinetoTrace& trace, const Exchanges& exchanges, RankStep& step) {
  for (RankTask& task : step.tasks) {
    if (!task.collective) continue;
    if (task.collective == OpKind::send && !exchanges.has(OpKind::send) && exchanges.has(OpKind::all_to_all))
      task.collective = OpKind::all_to_all;
    task.axis = exchanges.axis_of(*task.collective, trace.kernels[task.kernel].collective);
  }
}

std::map<std::string, std::vector<Seconds>> durations_by_kind(const RankStep& step) {
  std::map<std::string, std::vector<Seconds>> durations;
  for (const RankTask& task : step.tasks) durations[task.kind()].push_back(task.end - task.start);
  return durations;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// Sums over ranks.
class Sums {
 public:
  void add(const RankStep& simulated, const RankStep& measured) {
    ++ranks_;
    const auto of_simulation = durations_by_kind(simulated), of_measurement = durations_by_kind(measured);
    for (const auto& [name, durations] : of_simulation) {
      Kind& kind = kinds_[name];
      kind.simulated += static_cast<double>(durations.size());
      for (const Seconds duration : durations) kind.time.simulated += duration;
      const auto other = of_measurement.find(name);
      if (other == of_measurement.end() || other->second.size() != durations.size()) continue;
      for (std::size_t i = 0; i < durations.size(); ++i)
        if (other->second[i] > 0) kind.errors.push_back(std::abs(durations[i] / other->second[i] - 1));
    }
    for (const auto& [name, durations] : of_measurement) {
      Kind& kind = kinds_[name];
      kind.measured += static_cast<double>(durations.size());
      for (const Seconds duration : durations) kind.time.measured += duration;
    }
    simulated_.add(parts_of(simulated), 1);
    measured_.add(parts_of(measured), 1);
    step_.simulated += simulated.time;
    step_.measured += measured.time;
  }

  void mean_into(AgainstSimulation& result) const {
    const double share = 1.0 / ranks_;
    const auto mean = [&](const SimulatedAndMeasured& sum) {
      return SimulatedAndMeasured{share * sum.simulated, share * sum.measured};
    };
    result.step_time = mean(step_);
    for (const auto& [name, kind] : kinds_)
      result.kinds.push_back({.name = name,
                              .simulated_count = share * kind.simulated,
                              .measured_count = share * kind.measured,
                              .time = mean(kind.time),
                              .by_order = kind.errors.empty() ? std::nullopt : std::optional(median(kind.errors))});
    std::ranges::stable_sort(result.kinds, std::greater<>(),
                             [](const KindAgainstSimulation& kind) { return kind.time.measured; });
    const auto part = [&](std::string name, Seconds simulated, Seconds measured) {
      if (simulated > 0 || measured > 0) result.parts.push_back({std::move(name), mean({simulated, measured})});
    };
    const auto backward = [](const TimeParts& parts) { return parts.compute() - parts.in_phase(Phase::forward); };
    part("forward", simulated_.in_phase(Phase::forward), measured_.in_phase(Phase::forward));
    part("backward", backward(simulated_), backward(measured_));
    part("optimizer", simulated_.optimizer(), measured_.optimizer());
    for (const Axis axis : communication_axes)
      part("exposed " + std::string(name_of(axis)), simulated_.exposed_on(axis), measured_.exposed_on(axis));
    part("exposed, axis not known", simulated_.exposed_on(Axis::none), measured_.exposed_on(Axis::none));
    part("nothing runs", simulated_.bubble, measured_.bubble);
  }

 private:
  struct Kind {
    double simulated = 0, measured = 0;
    SimulatedAndMeasured time;
    std::vector<double> errors;
  };
  int ranks_ = 0;
  std::map<std::string, Kind> kinds_;
  TimeParts simulated_, measured_;
  SimulatedAndMeasured step_;
};

void check_world(const Scenario& scenario, const std::vector<KinetoTrace>& traces) {
  const std::int64_t world = scenario.parallelism.world_size();
  for (const KinetoTrace& trace : traces) {
    if (trace.world_size > 0 && trace.world_size != world)
      throw InputError({trace.file, 0, 0}, "is of a run on " + std::to_string(trace.world_size) +
                                               " ranks, and the scenario has " + std::to_string(world) +
                                               "; expected a scenario of the run that was traced");
    if (trace.rank.value_or(0) >= world)
      throw InputError({trace.file, 0, 0}, "is of rank " + std::to_string(*trace.rank) + ", and the scenario has " +
                                               std::to_string(world) + " ranks; expected a scenario of the run that was traced");
  }
}

void add_kernels(const std::vector<KindSum>& of_rank, std::vector<KindSum>& all) {
  for (const KindSum& kernel : of_rank) {
    const auto known = std::ranges::find(all, kernel.name, &KindSum::name);
    if (known == all.end()) {
      all.push_back(kernel);
    } else {
      known->count += kernel.count;
      known->time += kernel.time;
    }
  }
}

bool has_no_axis(const RankStep& step) {
  return std::ranges::any_of(
      step.tasks, [](const RankTask& task) { return task.family == KernelFamily::communication && task.axis == Axis::none; });
}

void note(bool is_so, std::string sentence, std::vector<std::string>& notes) {
  if (is_so) notes.push_back(std::move(sentence));
}

}  // namespace

AgainstSimulation against_simulation(const Scenario& scenario, const std::vector<KinetoTrace>& traces,
                                     std::optional<std::int64_t> step) {
  check_world(scenario, traces);
  const SimulatedStep simulated = simulate_step(scenario, true);
  AgainstSimulation result;
  result.scenario = scenario.name;
  result.world_size = scenario.parallelism.world_size();
  result.device = traces.front().device;
  constexpr std::size_t most_kernels = 8;
  Sums sums;
  bool unknown_axis = false, unknown_phase = false, one_iteration = false;
  for (const KinetoTrace& trace : traces) {
    const std::uint32_t rank = trace.rank.value_or(0);
    const RankIndex lowered = simulated.class_of.empty() ? rank : simulated.class_of[rank];
    RankStep measured = step_of(trace, step);
    find_axes(trace, Exchanges(simulated.dag, lowered), measured);
    sums.add(simulated_step_of(simulated, lowered), measured);
    add_kernels(largest_kernels(trace, measured, KernelFamily::others, most_kernels), result.other_kernels);
    result.ranks.push_back(rank);
    if (result.step.empty()) result.step = measured.name;
    unknown_axis = unknown_axis || has_no_axis(measured);
    unknown_phase = unknown_phase || std::ranges::any_of(measured.tasks, [](const RankTask& task) { return !task.phase; });
    one_iteration = one_iteration || trace.iterations.empty();
  }
  sums.mean_into(result);
  std::ranges::stable_sort(result.other_kernels, std::greater<>(), &KindSum::time);
  result.other_kernels.resize(std::min(result.other_kernels.size(), most_kernels));

  const auto missing = result.world_size - static_cast<std::int64_t>(traces.size());
  note(missing > 0, std::to_string(missing) + " of " + std::to_string(result.world_size) + " ranks were not traced",
       result.notes);
  note(!traces.front().rank, "the trace does not tell its rank, 0 was assumed", result.notes);
  note(one_iteration, "the trace marks no steps (profiler.step()), all of it was taken for one", result.notes);
  note(unknown_phase, "the trace does not tell what the CPU issued every kernel for; such kernels count as forward",
       result.notes);
  note(unknown_axis, "some communication fits no axis of the scenario, or several", result.notes);
  note(true, "measured communication begins when its own rank is ready, so that what it waits for others counts as exposed",
       result.notes);
  return result;
}

nlohmann::ordered_json to_json_object(const AgainstSimulation& comparison) {
  using Json = nlohmann::ordered_json;
  Json parts = Json::array(), kinds = Json::array(), others = Json::array();
  for (const PartAgainstSimulation& part : comparison.parts)
    parts.push_back({{"name", part.name}, {"simulated_s", part.time.simulated}, {"measured_s", part.time.measured}});
  for (const KindAgainstSimulation& kind : comparison.kinds)
    kinds.push_back({{"name", kind.name},
                     {"simulated_count", kind.simulated_count},
                     {"measured_count", kind.measured_count},
                     {"simulated_s", kind.time.simulated},
                     {"measured_s", kind.time.measured},
                     {"by_order", kind.by_order ? Json(*kind.by_order) : Json(nullptr)}});
  for (const KindSum& kernel : comparison.other_kernels)
    others.push_back({{"name", kernel.name}, {"count", kernel.count}, {"time_s", kernel.time}});
  return {{"scenario", comparison.scenario},
          {"ranks", comparison.ranks},
          {"world_size", comparison.world_size},
          {"device", comparison.device},
          {"step", comparison.step},
          {"simulated_s", comparison.step_time.simulated},
          {"measured_s", comparison.step_time.measured},
          {"parts", parts},
          {"kinds", kinds},
          {"other_kernels", others},
          {"notes", comparison.notes}};
}

}  // namespace tandem::studies
