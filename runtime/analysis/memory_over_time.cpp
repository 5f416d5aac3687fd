#include "runtime/analysis/memory_over_time.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include "runtime/analysis/graph_memory.h"
#include "runtime/analysis/memory_origins.h"
#include "runtime/analysis/repeated_changes.h"
#include "runtime/base/parallel.h"

namespace tandem {
namespace {

/// One point per instant of the step at which something changes, and one at 0. Inputs, and what graphs hold, are there all the
/// time.
std::vector<MemoryPoint> points_of(const std::vector<MemoryChange>& changes, const Repeat& repeat, const MemoryUse& use) {
  std::vector<MemoryPoint> points{{0, use.graph_activations, use.inputs + use.graph_buffers}};
  all_in_whole_step(changes, repeat, [&](const MemoryChange& change, std::int64_t time) {
    const Seconds at = repeat.again_at(change.at, time);
    if (at > points.back().at) {
      points.push_back(points.back());
      points.back().at = at;
    }
    (change.is_activation ? points.back().activations : points.back().buffers) += change.bytes;
    return true;
  });
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

/// By place of a buffer of the rank (by_rank.h), of those alone that are `asked` for.
std::vector<Touched> touched_on(const MemoryChanges& changes, RankIndex rank, const std::vector<bool>& asked) {
  const Dag& dag = changes.dag();
  const Timeline& timeline = changes.timeline();
  const ByRank &tasks = changes.origins().tasks, &buffers = changes.origins().buffers;
  std::vector<Touched> touched(buffers.count(rank));
  tasks.for_each(rank, [&](TaskId id) {
    for (const Operand& operand : dag.operands_of(id)) {
      const std::size_t place = buffers.place(rank, dag.buffers[operand.buffer].base);
      if (!asked[place]) continue;
      Touched& buffer = touched[place];
      if (buffer.first == no_id || timeline.start[id] < timeline.start[buffer.first]) buffer.first = id;
      if (buffer.writer == no_id && operand.access() != Access::read) buffer.writer = id;
    }
  });
  for (Touched& buffer : touched) {
    if (buffer.writer == no_id) buffer.writer = buffer.first;
  }
  return touched;
}

/// `bytes`: by name of the DAG, what was alive and first written by tasks of that name.
std::vector<MemoryHolder> largest_of(const Dag& dag, const std::vector<Bytes>& bytes, const MemoryUse& use, std::size_t most) {
  std::map<std::string, Bytes> by_name{
      {"framework", use.framework}, {"inputs", use.inputs - use.framework}, {"CUDA graphs", use.graphs()}};
  for (std::size_t name = 0; name < bytes.size(); ++name)
    if (bytes[name] != 0) by_name[dag.names[name]] += bytes[name];
  std::vector<MemoryHolder> holders;
  for (const auto& [name, held] : by_name) {
    if (held > 0) holders.push_back({name, held});
  }
  std::ranges::stable_sort(holders, std::greater<>(), &MemoryHolder::bytes);
  holders.resize(std::min(most, holders.size()));
  return holders;
}

}  // namespace

MemoryOverTime MemoriesOverTime::of(const MemoryUse& use, std::vector<MemoryChange> of_rank) const {
  const Dag& dag = changes_.dag();
  const ByRank& buffers = changes_.origins().buffers;
  const Timeline& timeline = changes_.timeline();
  const std::vector<MemoryChange> changes = changes_in(MemoryHome::allocator, std::move(of_rank));
  const auto is_after_peak = [&](const MemoryChange& change) { return timeline.in_step(change.at) > use.peak_at; };
  const std::span<const MemoryChange> up_to_peak(changes.begin(), std::ranges::find_if(changes, is_after_peak));
  const auto place_of = [&](const MemoryChange& change) { return buffers.place(use.rank, change.buffer); };
  std::vector<Bytes> held(buffers.count(use.rank), 0);  // at the peak, by place
  for (const MemoryChange& change : up_to_peak) held[place_of(change)] += change.bytes;
  std::vector<bool> is_held(held.size());
  for (std::size_t place = 0; place < held.size(); ++place) is_held[place] = held[place] != 0;
  if (!up_to_peak.empty()) is_held[place_of(up_to_peak.back())] = true;
  const std::vector<Touched> touched = touched_on(changes_, use.rank, is_held);
  std::vector<Bytes> alive(dag.names.size(), 0);  // at the peak, by name
  for (std::size_t place = 0; place < held.size(); ++place)
    if (held[place] != 0) alive[dag.tasks[touched[place].writer].name] += held[place];
  return {.use = use,
          .stage = dag.ranks[use.rank].pp,
          .peak_task = up_to_peak.empty() ? no_id : touched[place_of(up_to_peak.back())].first,
          .points = thinned(points_of(changes, timeline.repeat, use), detail_.points),
          .largest = largest_of(dag, alive, use, detail_.holders)};
}

std::vector<MemoryOverTime> memory_over_time(const Dag& dag, const Timeline& timeline, const std::vector<RankIndex>& ranks,
                                             const MemoryDetail& detail) {
  const MemoryChanges changes(dag, timeline);
  const MemoryUses uses(changes);
  const MemoriesOverTime over_time(changes, detail);
  std::vector<MemoryOverTime> memories(ranks.size());
  in_parallel(ranks.size(), [&](std::size_t i) {
    std::vector<MemoryChange> of_rank = changes[ranks[i]];
    const MemoryUse use = uses.of(ranks[i], of_rank);
    memories[i] = over_time.of(use, std::move(of_rank));
  });
  return memories;
}

}  // namespace tandem
