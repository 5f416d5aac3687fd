#include "runtime/analysis/overlap.h"

#include <algorithm>
#include <map>

namespace tandem {
namespace {

struct Interval {
  Seconds start, end;
};

/// Sorted, and joined where they touch or overlap.
std::vector<Interval> joined(std::vector<Interval> intervals) {
  std::ranges::sort(intervals, {}, &Interval::start);
  std::vector<Interval> apart;
  for (const Interval& next : intervals) {
    if (!apart.empty() && next.start <= apart.back().end) {
      apart.back().end = std::max(apart.back().end, next.end);
    } else {
      apart.push_back(next);
    }
  }
  return apart;
}

Seconds total(const std::vector<Interval>& apart) {
  Seconds sum = 0;
  for (const Interval& interval : apart) sum += interval.end - interval.start;
  return sum;
}

Seconds common(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  Seconds sum = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    sum += std::max(0.0, std::min(a[i].end, b[j].end) - std::max(a[i].start, b[j].start));
    a[i].end < b[j].end ? ++i : ++j;
  }
  return sum;
}

}  // namespace

std::vector<StreamOverlap> stream_overlaps(const Dag& dag, const Timeline& timeline) {
  std::map<std::pair<RankIndex, Stream>, std::vector<Interval>> communication;
  std::vector<std::vector<Interval>> compute(dag.ranks.size());
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    const Interval interval{timeline.start[id], timeline.end[id]};
    if (is_communication(task.op)) {
      communication[{task.rank, task.stream}].push_back(interval);
    } else if (task.stream == Stream::compute) {
      compute[task.rank].push_back(interval);
    }
  }
  for (std::vector<Interval>& intervals : compute) intervals = joined(std::move(intervals));
  std::vector<StreamOverlap> overlaps;
  for (auto& [place, intervals] : communication) {
    const std::vector<Interval> busy = joined(std::move(intervals));
    overlaps.push_back({place.first, place.second, total(busy), common(busy, compute[place.first])});
  }
  return overlaps;
}

}  // namespace tandem
