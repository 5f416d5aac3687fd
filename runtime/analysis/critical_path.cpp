#include "runtime/analysis/critical_path.h"

#include <algorithm>
#include <map>

#include "runtime/analysis/kinds.h"
#include "runtime/analysis/predecessors.h"

namespace tandem {
namespace {

/// Of all that `id` and the other members of its collective waited for, what ended last.
TaskId last_before(const Dag& dag, const Timeline& timeline, const Predecessors& predecessors, const TaskId& id) {
  TaskId last = no_id;
  for (const TaskId member : dag.unit_of(id)) {
    for (const TaskId before : predecessors.of(member)) {
      if (last == no_id || timeline.end[before] > timeline.end[last]) last = before;
    }
  }
  return last;
}

}  // namespace

std::vector<PathSegment> critical_path(const Dag& dag, const Timeline& timeline) {
  std::vector<PathSegment> path;
  if (dag.tasks.empty()) return path;
  const Predecessors predecessors(dag);
  auto task = static_cast<TaskId>(std::ranges::max_element(timeline.end) - timeline.end.begin());
  Seconds reached = timeline.end[task];  // all from here on is in `path`
  const auto add = [&](TaskId id, Seconds from) {
    if (from >= reached) return;
    path.push_back({id, from, reached});
    reached = from;
  };
  while (task != no_id) {
    const TaskId before = last_before(dag, timeline, predecessors, task);
    const Seconds ready = before == no_id ? 0 : timeline.end[before];
    add(task, std::max(timeline.start[task], ready));
    add(no_id, ready);
    task = before;
  }
  std::ranges::reverse(path);
  return path;
}

std::string kind_of(const Dag& dag, const PathSegment& segment) {
  if (segment.task == no_id) return "wait";
  const Task& task = dag.tasks[segment.task];
  const std::string kind = kind_of(dag, segment.task);
  return is_communication(task.op) ? kind : kind + " " + std::string(name_of(task.phase));
}

std::vector<PathKind> sum_by_kind(const Dag& dag, const std::vector<PathSegment>& path) {
  std::map<std::string, Seconds> sums;
  for (const PathSegment& segment : path) sums[kind_of(dag, segment)] += segment.end - segment.start;
  std::vector<PathKind> kinds;
  for (const auto& [name, time] : sums) kinds.push_back({name, time});
  std::ranges::stable_sort(kinds, std::greater<>(), &PathKind::time);
  return kinds;
}

}  // namespace tandem
