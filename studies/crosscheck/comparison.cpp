#include "studies/crosscheck/comparison.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <stdexcept>

#include "runtime/analysis/kinds.h"
#include "runtime/analysis/memory.h"

namespace tandem::studies {
namespace {

std::vector<KindComparison> compare_kinds(const Dag& dag, const Timeline& simulated, const Timeline& measured) {
  std::map<std::string, KindComparison> by_name;
  Seconds all = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    KindComparison& kind = by_name[kind_of(dag, id)];
    ++kind.count;
    kind.time.simulated += simulated.duration(id);
    kind.time.measured += measured.duration(id);
    all += measured.duration(id);
  }
  std::vector<KindComparison> kinds;
  for (auto& [name, kind] : by_name) {
    kind.name = name;
    kind.share = all > 0 ? kind.time.measured / all : 0;
    kinds.push_back(std::move(kind));
  }
  std::ranges::stable_sort(kinds, std::greater<>(), [](const KindComparison& kind) { return kind.time.measured; });
  return kinds;
}

std::vector<StreamComparison> compare_streams(const Dag& dag, const Timeline& simulated, const Timeline& measured) {
  std::map<Stream, StreamComparison> by_stream;
  const auto add = [](StreamOverlap& sum, const StreamOverlap& overlap) {
    sum.stream = overlap.stream;
    sum.busy += overlap.busy;
    sum.covered += overlap.covered;
  };
  for (const StreamOverlap& overlap : stream_overlaps(dag, simulated)) {
    StreamComparison& comparison = by_stream[overlap.stream];
    comparison.stream = overlap.stream;
    ++comparison.ranks;
    add(comparison.simulated, overlap);
  }
  for (const StreamOverlap& overlap : stream_overlaps(dag, measured)) add(by_stream[overlap.stream].measured, overlap);
  std::vector<StreamComparison> streams;
  for (const auto& [stream, comparison] : by_stream) streams.push_back(comparison);
  return streams;
}

std::vector<TaskComparison> worst_tasks(const Dag& dag, const Timeline& simulated, const Timeline& measured) {
  constexpr std::size_t most = 10;
  std::vector<TaskId> tasks(dag.tasks.size());
  std::iota(tasks.begin(), tasks.end(), TaskId{0});
  const auto difference = [&](TaskId id) { return std::abs(simulated.duration(id) - measured.duration(id)); };
  const auto worse = [&](TaskId a, TaskId b) { return std::pair(-difference(a), a) < std::pair(-difference(b), b); };
  const std::size_t count = std::min(most, tasks.size());
  std::ranges::partial_sort(tasks, tasks.begin() + static_cast<std::ptrdiff_t>(count), worse);
  std::vector<TaskComparison> worst;
  for (std::size_t i = 0; i < count; ++i) {
    const TaskId id = tasks[i];
    worst.push_back({.task = id,
                     .rank = dag.ranks[dag.tasks[id].rank].world_rank,
                     .name = std::string(dag.name_of_task(id)),
                     .time = {simulated.duration(id), measured.duration(id)}});
  }
  return worst;
}

/// Returns the tasks of each stream of each rank in the order in which they ran.
std::vector<std::vector<TaskId>> order_by_stream(const Dag& dag, const Timeline& timeline) {
  std::vector<std::vector<TaskId>> order(dag.ranks.size() * stream_count);
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    order[dag.tasks[id].rank * stream_count + static_cast<std::size_t>(dag.tasks[id].stream)].push_back(id);
  }
  for (std::vector<TaskId>& tasks : order) {
    std::ranges::stable_sort(tasks, [&](TaskId a, TaskId b) {
      return std::pair(timeline.start[a], timeline.end[a]) < std::pair(timeline.start[b], timeline.end[b]);
    });
  }
  return order;
}

std::vector<RankOrder> compare_orders(const Dag& dag, const Timeline& simulated, const Timeline& measured) {
  const auto expected = order_by_stream(dag, simulated);
  const auto found = order_by_stream(dag, measured);
  std::vector<RankOrder> orders;
  for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) {
    RankOrder order{.rank = dag.ranks[rank].world_rank};
    for (std::size_t s = rank * stream_count; s < (rank + 1) * stream_count; ++s) {
      order.tasks += expected[s].size();
      order.streams += expected[s].empty() ? 0 : 1;
      order.same = order.same && expected[s] == found[s];
    }
    orders.push_back(order);
  }
  return orders;
}

Bytes fullest(const Dag& dag, const Timeline& timeline) {
  Bytes most = 0;
  for (const MemoryUse& use : memory_use(dag, timeline)) most = std::max(most, use.peak());
  return most;
}

}  // namespace

bool Comparison::same_order() const { return std::ranges::all_of(orders, &RankOrder::same); }

void refuse_larger_error(const Comparison& comparison, double most) {
  const std::optional<double> error = comparison.step.error();
  if (!error || !std::isfinite(*error)) throw std::runtime_error("the step times cannot be compared: one of them is no time");
  if (std::abs(*error) > most)
    throw std::runtime_error(fmt::format("the simulated step time is off by {:+.1f} %, more than --max-error allows: {:.1f} %",
                                         100 * *error, 100 * most));
}

void refuse_larger_kind_errors(const Comparison& comparison, double most) {
  constexpr double least_share = 0.01;
  std::string off;
  for (const KindComparison& kind : comparison.kinds) {
    const std::optional<double> error = kind.time.error();
    if (kind.share < least_share || (error && std::abs(*error) <= most)) continue;
    off += fmt::format("{}{} by {}", off.empty() ? "" : ", ", kind.name,
                       error ? fmt::format("{:+.1f} %", 100 * *error) : "no number");
  }
  if (!off.empty())
    throw std::runtime_error(
        fmt::format("simulated kinds of tasks are off, more than --max-kind-error allows ({:.1f} %): {}", 100 * most, off));
}

Comparison compare(const Dag& dag, const Timeline& simulated, const Timeline& measured, const std::vector<Bytes>& peaks) {
  Comparison comparison{.step = {simulated.makespan() / dag.info.steps, measured.makespan() / dag.info.steps},
                        .kinds = compare_kinds(dag, simulated, measured),
                        .streams = compare_streams(dag, simulated, measured),
                        .worst = worst_tasks(dag, simulated, measured),
                        .orders = compare_orders(dag, simulated, measured),
                        .memory = {fullest(dag, simulated), fullest(dag, measured), std::nullopt}};
  if (!peaks.empty()) comparison.memory.measured = std::ranges::max(peaks);
  return comparison;
}

}  // namespace tandem::studies
