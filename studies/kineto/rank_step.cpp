#include "studies/kineto/rank_step.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "runtime/base/input_error.h"

namespace tandem::studies {
namespace {

/// The kernels that the CPU issued in an iteration, or where it is not known when, that ran in it.
struct Iteration {
  std::string name;
  std::vector<std::size_t> kernels;
  Seconds start = 0, end = 0, time = 0;
  bool is_whole = false;  ///< another one follows, so that it is known when it ended
};

std::vector<Iteration> iterations_of(const KinetoTrace& trace) {
  std::vector<Iteration> all(std::max<std::size_t>(1, trace.iterations.size()));
  for (std::size_t i = 0; i < trace.iterations.size(); ++i) all[i].name = trace.iterations[i].name;
  for (std::size_t k = 0; k < trace.kernels.size(); ++k) {
    const Seconds at = trace.kernels[k].launched.value_or(trace.kernels[k].start);
    if (trace.iterations.empty()) {
      all.front().kernels.push_back(k);
      continue;
    }
    for (std::size_t i = 0; i < all.size(); ++i)
      if (trace.iterations[i].start <= at && at <= trace.iterations[i].end) all[i].kernels.push_back(k);
  }
  std::erase_if(all, [](const Iteration& iteration) { return iteration.kernels.empty(); });
  for (Iteration& iteration : all) {
    iteration.start = trace.kernels[iteration.kernels.front()].start;
    for (const std::size_t k : iteration.kernels) iteration.end = std::max(iteration.end, trace.kernels[k].end);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].is_whole = i + 1 < all.size();
    all[i].time = (all[i].is_whole ? all[i + 1].start : all[i].end) - all[i].start;
    if (all[i].time < 0)
      throw InputError({trace.file, 0, 0}, "has kernels of " + all[i + 1].name + " before those of " + all[i].name +
                                               "; expected steps that follow each other");
  }
  return all;
}

std::string names_of(const std::vector<Iteration>& iterations) {
  std::string names;
  for (const Iteration& iteration : iterations) names += (names.empty() ? "" : ", ") + iteration.name;
  return names;
}

const Iteration& typical(const std::vector<Iteration>& iterations) {
  std::vector<const Iteration*> whole;
  for (const Iteration& iteration : iterations)
    if (iteration.is_whole) whole.push_back(&iteration);
  if (whole.empty()) return *std::ranges::max_element(iterations, {}, &Iteration::time);
  const auto middle = whole.begin() + static_cast<std::ptrdiff_t>((whole.size() - 1) / 2);
  std::ranges::nth_element(whole, middle, {}, &Iteration::time);
  return **middle;
}

const Iteration& chosen(const KinetoTrace& trace, const std::vector<Iteration>& iterations, std::optional<std::int64_t> number) {
  if (iterations.empty())
    throw InputError({trace.file, 0, 0}, "has no kernel that was issued in a ProfilerStep; expected a step with kernels");
  if (!number) return typical(iterations);
  const std::string name = "ProfilerStep#" + std::to_string(*number);
  const auto found = std::ranges::find(iterations, name, &Iteration::name);
  if (found == iterations.end())
    throw InputError({trace.file, 0, 0}, "has no kernels of " + name + "; expected " +
                                             (trace.iterations.empty() ? "no --step, as the trace marks no steps"
                                                                       : "one of " + names_of(iterations)));
  return *found;
}

bool computes(const RankTask& task) { return task.family != KernelFamily::communication && task.family != KernelFamily::copies; }

std::string short_name(std::string name) {
  constexpr std::string_view nameless = "(anonymous namespace)::";
  for (std::size_t at = name.find(nameless); at != std::string::npos; at = name.find(nameless)) name.erase(at, nameless.size());
  name = name.substr(0, name.find_first_of("<("));
  if (name.starts_with("void ")) name.erase(0, 5);
  return name;
}

std::vector<KindSum> by_time(const std::map<std::string, KindSum>& sums) {
  std::vector<KindSum> kinds;
  for (const auto& [name, sum] : sums) kinds.push_back({name, sum.count, sum.time});
  std::ranges::stable_sort(kinds, std::greater<>(), &KindSum::time);
  return kinds;
}

}  // namespace

std::string RankTask::kind() const {
  if (family != KernelFamily::communication) return std::string(name_of(family));
  const std::string name = collective ? std::string(operation(*collective).name) : "communication";
  return axis == Axis::none ? name : name + " (" + std::string(name_of(axis)) + ")";
}

RankStep step_of(const KinetoTrace& trace, std::optional<std::int64_t> number) {
  const std::vector<Iteration> iterations = iterations_of(trace);
  const Iteration& iteration = chosen(trace, iterations, number);
  RankStep step{.rank = trace.rank, .name = iteration.name, .time = iteration.time, .tasks = {}};
  for (const std::size_t k : iteration.kernels) {
    const RecordedKernel& kernel = trace.kernels[k];
    step.tasks.push_back({.family = family_of(kernel),
                          .collective = collective_of(kernel),
                          .phase = kernel.phase,
                          .start = kernel.start - iteration.start,
                          .end = std::min(kernel.end - iteration.start, iteration.time),
                          .kernel = k});
  }
  return step;
}

TimeParts parts_of(const RankStep& step) {
  std::vector<Seconds> cuts{0, step.time};
  for (const RankTask& task : step.tasks) {
    cuts.push_back(std::clamp(task.start, 0.0, step.time));
    cuts.push_back(std::clamp(task.end, 0.0, step.time));
  }
  std::ranges::sort(cuts);
  cuts.erase(std::ranges::unique(cuts).begin(), cuts.end());

  TimeParts parts;
  std::vector<const RankTask*> running;
  std::size_t next = 0;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const Seconds from = cuts[i], length = cuts[i + 1] - from;
    for (; next < step.tasks.size() && step.tasks[next].start <= from; ++next) running.push_back(&step.tasks[next]);
    std::erase_if(running, [&](const RankTask* task) { return task->end <= from; });
    const auto last_to_end = [&](const auto& wanted) {
      const RankTask* last = nullptr;
      for (const RankTask* task : running)
        if (wanted(*task) && (last == nullptr || task->end > last->end)) last = task;
      return last;
    };
    const RankTask* const kernel = last_to_end(computes);
    const RankTask* const exchange = last_to_end([](const RankTask& task) { return task.family == KernelFamily::communication; });
    if (kernel != nullptr) {
      const Phase phase = kernel->family == KernelFamily::optimizer ? Phase::optimizer : kernel->phase.value_or(Phase::forward);
      parts.kernels[static_cast<std::size_t>(phase)] += length;
    } else if (exchange != nullptr) {
      parts.exposed[static_cast<std::size_t>(exchange->axis)] += length;
    } else {
      parts.bubble += length;
    }
  }
  return parts;
}

std::vector<KindSum> kinds_of(const RankStep& step) {
  std::map<std::string, KindSum> sums;
  for (const RankTask& task : step.tasks) {
    KindSum& sum = sums[task.kind()];
    ++sum.count;
    sum.time += task.end - task.start;
  }
  return by_time(sums);
}

std::vector<KindSum> largest_kernels(const KinetoTrace& trace, const RankStep& step, KernelFamily family, std::size_t most) {
  std::map<std::string, KindSum> sums;
  for (const RankTask& task : step.tasks) {
    if (task.family != family) continue;
    KindSum& sum = sums[short_name(trace.kernels[task.kernel].name)];
    ++sum.count;
    sum.time += task.end - task.start;
  }
  std::vector<KindSum> kinds = by_time(sums);
  kinds.resize(std::min(kinds.size(), most));
  return kinds;
}

nlohmann::ordered_json to_json_object(const std::vector<KinetoTrace>& traces, const std::vector<RankStep>& steps) {
  using Json = nlohmann::ordered_json;
  Json ranks = Json::array();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const RankStep& step = steps[i];
    const TimeParts parts = parts_of(step);
    Json kinds = Json::array();
    for (const KindSum& kind : kinds_of(step))
      kinds.push_back({{"name", kind.name}, {"count", kind.count}, {"time_s", kind.time}});
    Json others = Json::array();
    for (const KindSum& kernel : largest_kernels(traces[i], step, KernelFamily::others, 10))
      others.push_back({{"name", kernel.name}, {"count", kernel.count}, {"time_s", kernel.time}});
    ranks.push_back({{"rank", step.rank ? Json(*step.rank) : Json(nullptr)},
                     {"file", traces[i].file},
                     {"device", traces[i].device},
                     {"step", step.name},
                     {"step_time_s", step.time},
                     {"compute_s", parts.compute()},
                     {"optimizer_s", parts.optimizer()},
                     {"exposed_s", std::accumulate(parts.exposed.begin(), parts.exposed.end(), Seconds{0})},
                     {"idle_s", parts.bubble},
                     {"kinds", kinds},
                     {"other_kernels", others}});
  }
  return {{"world_size", traces.front().world_size}, {"ranks", ranks}};
}

}  // namespace tandem::studies
