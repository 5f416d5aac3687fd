#include "runtime/analysis/overlap.h"

#include <algorithm>
#include <map>

namespace tandem {
namespace {

struct Interval {
  Seconds start, end;
};

/// Adds an interval: joins it with the last one where it starts in it or at its end.
void join(std::vector<Interval>& intervals, const Interval& next) {
  if (!intervals.empty() && intervals.back().start <= next.start && next.start <= intervals.back().end) {
    intervals.back().end = std::max(intervals.back().end, next.end);
  } else {
    intervals.push_back(next);
  }
}

/// Sorted, and joined where they touch or overlap.
std::vector<Interval> joined(std::vector<Interval> intervals) {
  // Those of one stream are in order.
  if (!std::ranges::is_sorted(intervals, {}, &Interval::start)) std::ranges::sort(intervals, {}, &Interval::start);
  std::vector<Interval> apart;
  for (const Interval& next : intervals) join(apart, next);
  return apart;
}

Seconds total(const Timeline& timeline, const std::vector<Interval>& apart) {
  Seconds sum = 0;
  for (const Interval& interval : apart) sum += timeline.length(interval.start, interval.end);
  return sum;
}

Seconds common(const Timeline& timeline, const std::vector<Interval>& a, const std::vector<Interval>& b) {
  Seconds sum = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Seconds start = std::max(a[i].start, b[j].start), end = std::min(a[i].end, b[j].end);
    if (end > start) sum += timeline.length(start, end);
    a[i].end < b[j].end ? ++i : ++j;
  }
  return sum;
}

/// When the compute stream of each rank was busy. Kernels follow on each other as they come, so few intervals are ever held.
std::vector<std::vector<Interval>> compute_intervals(const Dag& dag, const Timeline& timeline) {
  std::vector<std::vector<Interval>> compute(dag.ranks.size());
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (!is_communication(task.op) && task.stream == Stream::compute)
      join(compute[task.rank], {timeline.start[id], timeline.end[id]});
  }
  for (std::vector<Interval>& intervals : compute) intervals = joined(std::move(intervals));
  return compute;
}

}  // namespace

std::vector<StreamOverlap> stream_overlaps(const Dag& dag, const Timeline& timeline) {
  std::map<std::pair<RankIndex, Stream>, std::vector<Interval>> communication;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (is_communication(task.op)) communication[{task.rank, task.stream}].push_back({timeline.start[id], timeline.end[id]});
  }
  const std::vector<std::vector<Interval>> compute = compute_intervals(dag, timeline);
  std::vector<StreamOverlap> overlaps;
  for (auto& [place, intervals] : communication) {
    const std::vector<Interval> busy = joined(std::move(intervals));
    overlaps.push_back({place.first, place.second, total(timeline, busy), common(timeline, busy, compute[place.first])});
  }
  return overlaps;
}

CommunicationOverlap communication_overlap(const Dag& dag, const Timeline& timeline) {
  std::vector<std::array<std::vector<Interval>, axis_count>> communication(dag.ranks.size());
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (is_communication(task.op))
      communication[task.rank][static_cast<std::size_t>(task.axis)].push_back({timeline.start[id], timeline.end[id]});
  }
  const std::vector<std::vector<Interval>> compute = compute_intervals(dag, timeline);
  double ranks = 0;
  for (const Rank& rank : dag.ranks) ranks += rank.count;
  CommunicationOverlap overlap;
  for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) {
    const double share = dag.ranks[rank].count / (ranks * dag.info.steps);
    const auto add = [&](CommunicationOverlap::Times& times, const std::vector<Interval>& busy) {
      times.busy += share * total(timeline, busy);
      times.covered += share * common(timeline, busy, compute[rank]);
    };
    std::vector<Interval> any;
    for (std::size_t axis = 0; axis < axis_count; ++axis) {
      const std::vector<Interval> busy = joined(std::move(communication[rank][axis]));
      add(overlap.by_axis[axis], busy);
      any.insert(any.end(), busy.begin(), busy.end());
    }
    add(overlap.all, joined(std::move(any)));
  }
  return overlap;
}

}  // namespace tandem
