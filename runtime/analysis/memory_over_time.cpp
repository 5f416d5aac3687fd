#include "runtime/analysis/memory_over_time.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "runtime/analysis/graph_memory.h"
#include "runtime/analysis/memory_changes.h"
#include "runtime/base/parallel.h"

namespace tandem {
namespace {

/// One point per instant at which something changes, and one at 0. Inputs, and what graphs hold, are there all the time.
std::vector<MemoryPoint> points_of(const std::vector<MemoryChange>& changes, const MemoryUse& use) {
  std::vector<MemoryPoint> points{{0, use.graph_activations, use.inputs + use.graph_buffers}};
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
  const std::size_t pairs = (most - 1) / 2;
  const auto bins = static_cast<double>(pairs);
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

/// The tasks that a buffer, its views included, is told by.
struct Touched {
  TaskId first = no_id;   ///< started first of all that touch it
  TaskId writer = no_id;  ///< wrote it first; the first to touch it where none writes
};

std::vector<Touched> touched_by_buffer(const Dag& dag, const Timeline& timeline) {
  std::vector<Touched> touched(dag.buffers.size());
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    for (const Operand& operand : dag.operands_of(id)) {
      Touched& buffer = touched[dag.buffers[operand.buffer].base];
      if (buffer.first == no_id || timeline.start[id] < timeline.start[buffer.first]) buffer.first = id;
      if (buffer.writer == no_id && operand.access() != Access::read) buffer.writer = id;
    }
  }
  for (Touched& buffer : touched) {
    if (buffer.writer == no_id) buffer.writer = buffer.first;
  }
  return touched;
}

/// `until_peak`: all changes up to the peak, so that what was freed cancels out.
std::vector<MemoryHolder> largest_of(const Dag& dag, std::span<const MemoryChange> until_peak,
                                     const std::vector<Touched>& touched, const MemoryUse& use, std::size_t most) {
  std::map<std::string, Bytes> bytes{
      {"framework", use.framework}, {"inputs", use.inputs - use.framework}, {"CUDA graphs", use.graphs()}};
  for (const MemoryChange& change : until_peak)
    bytes[std::string(dag.name_of_task(touched[change.buffer].writer))] += change.bytes;
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
  const MemoryChanges all(dag, timeline);
  const MemoryUses uses(dag, timeline, all);
  const std::vector<Touched> touched = touched_by_buffer(dag, timeline);
  std::vector<MemoryOverTime> memories(ranks.size());
  in_parallel(ranks.size(), [&](std::size_t i) {
    std::vector<MemoryChange> changes = all[ranks[i]];
    const MemoryUse use = uses.of(ranks[i], changes);
    changes = changes_in(MemoryHome::allocator, std::move(changes));
    const auto after_peak = std::ranges::upper_bound(changes, use.peak_at, {}, &MemoryChange::at);
    const std::span<const MemoryChange> until_peak(changes.begin(), after_peak);
    memories[i] = {.use = use,
                   .peak_task = until_peak.empty() ? no_id : touched[until_peak.back().buffer].first,
                   .points = thinned(points_of(changes, use), detail.points),
                   .largest = largest_of(dag, until_peak, touched, use, detail.holders)};
  });
  return memories;
}

}  // namespace tandem
