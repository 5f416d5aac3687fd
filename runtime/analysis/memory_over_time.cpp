#include "runtime/analysis/memory_over_time.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "runtime/analysis/lifetimes.h"

namespace tandem {
namespace {

/// One point per instant at which something changes, and one at 0. `inputs` are there all the time.
std::vector<MemoryPoint> points_of(const std::vector<MemoryChange>& changes, Bytes inputs) {
  std::vector<MemoryPoint> points{{0, 0, inputs}};
  for (const MemoryChange& change : changes) {
    if (change.at > points.back().at) {
      points.push_back(points.back());
      points.back().at = change.at;
    }
    (change.is_activation ? points.back().activations : points.back().buffers) += change.bytes;
  }
  return points;
}

std::vector<MemoryPoint> thinned(std::vector<MemoryPoint> points, std::size_t most) {
  if (points.size() <= most) return points;
  const auto bins = static_cast<double>((most - 1) / 2);
  const Seconds end = points.back().at;
  const auto bin_of = [&](const MemoryPoint& point) { return std::min(std::floor(point.at / end * bins), bins - 1); };
  std::vector<MemoryPoint> kept{points.front()};
  for (auto first = points.begin() + 1; first != points.end();) {
    const auto after =
        std::find_if(first, points.end(), [&](const MemoryPoint& point) { return bin_of(point) != bin_of(*first); });
    const auto highest =
        std::max_element(first, after, [](const MemoryPoint& a, const MemoryPoint& b) { return a.bytes() < b.bytes(); });
    kept.push_back(*highest);
    if (highest + 1 != after) kept.push_back(*(after - 1));
    first = after;
  }
  return kept;
}

/// Of buffers that are no views: the name of the task that wrote it first, or else touched it first.
class Writers {
 public:
  Writers(const Dag& dag, const std::vector<Lifetime>& lifetimes) : dag_(dag), writer_(dag.buffers.size(), no_id) {
    for (TaskId id = 0; id < dag.tasks.size(); ++id) {
      for (const Operand& operand : dag.operands_of(id)) {
        TaskId& writer = writer_[dag.buffers[operand.buffer].base];
        if (writer == no_id && operand.access() != Access::read) writer = id;
      }
    }
    for (BufferId id = 0; id < dag.buffers.size(); ++id) {
      if (writer_[id] == no_id) writer_[id] = lifetimes[id].first;
    }
  }
  std::string_view name_of(BufferId buffer) const { return dag_.name_of_task(writer_[buffer]); }

 private:
  const Dag& dag_;
  std::vector<TaskId> writer_;
};

std::vector<MemoryHolder> largest_of(std::span<const MemoryChange> until_peak, const Writers& writers, Bytes inputs,
                                     std::size_t most) {
  std::map<std::string, Bytes, std::less<>> bytes{{"inputs", inputs}};
  for (const MemoryChange& change : until_peak) bytes[std::string(writers.name_of(change.buffer))] += change.bytes;
  std::vector<MemoryHolder> holders;
  for (const auto& [name, held] : bytes) {
    if (held > 0) holders.push_back({name, held});
  }
  std::ranges::stable_sort(holders, std::greater<>(), &MemoryHolder::bytes);
  holders.resize(std::min(most, holders.size()));
  return holders;
}

}  // namespace

std::vector<MemoryOverTime> memory_over_time(const Dag& dag, const Timeline& timeline, const std::vector<RankIndex>& ranks,
                                             const MemoryDetail& detail) {
  const std::vector<Lifetime> lifetimes = lifetimes_of(dag, timeline);
  const MemoryChanges changes = memory_changes(dag, lifetimes);
  const std::vector<MemoryUse> uses = memory_use(dag, changes);
  const Writers writers(dag, lifetimes);
  std::vector<MemoryOverTime> memories;
  for (const RankIndex rank : ranks) {
    const auto after_peak = std::ranges::upper_bound(changes[rank], uses[rank].peak_at, {}, &MemoryChange::at);
    const std::span<const MemoryChange> until_peak(changes[rank].begin(), after_peak);
    memories.push_back({.rank = rank,
                        .use = uses[rank],
                        .peak_task = until_peak.empty() ? no_id : lifetimes[until_peak.back().buffer].first,
                        .points = thinned(points_of(changes[rank], uses[rank].inputs), detail.points),
                        .largest = largest_of(until_peak, writers, uses[rank].inputs, detail.holders)});
  }
  return memories;
}

}  // namespace tandem
