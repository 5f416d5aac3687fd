#include "runtime/analysis/critical_path.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "runtime/analysis/kinds.h"
#include "runtime/analysis/predecessors.h"

namespace tandem {
namespace {

/// A task of the step: one of the timeline, when its stretch happens for the `time`-th time again.
struct Occurrence {
  TaskId task = no_id;
  std::int64_t time = 0;
};

/// Tasks of a stretch that repeats itself, and those before it that did the same.
class Stretch {
 public:
  explicit Stretch(const Timeline& timeline) : timeline_(timeline) {
    const Repeat& repeat = timeline.repeat;
    if (repeat.times == 0) return;
    std::vector<TaskId> before, in_it;
    for (TaskId id = 0; id < timeline.start.size(); ++id) {
      const Seconds start = timeline.start[id];
      if (repeat.holds(start)) in_it.push_back(id);
      if (start >= repeat.before && start < repeat.from) before.push_back(id);
    }
    later_.assign(timeline.start.size(), no_id);
    for (std::size_t i = 0; i < std::min(before.size(), in_it.size()); ++i) later_[before[i]] = in_it[i];
  }

  /// Returns which task of the step the timeline's `task` stands for, before one of the step that waits for it.
  Occurrence before(TaskId task, const Occurrence& waits) const {
    const auto [first, last] = timeline_.times_of(task);
    if (last > 0) return {task, std::max(first, waits.time)};
    if (waits.time == 0 || later_[task] == no_id) return {task, 0};
    return {later_[task], waits.time - 1};
  }

 private:
  const Timeline& timeline_;
  std::vector<TaskId> later_;  ///< by task, the one that does the same in the stretch; no_id: none; empty where nothing repeats
};

struct Waited {
  TaskId task = no_id;    ///< that was waited for; no_id: nothing was
  TaskId member = no_id;  ///< of the collective, that waited for it
};

/// Of all that `id` and the other members of its collective waited for, what ended last; the first of those that ended at once.
Waited last_before(const Dag& dag, const Timeline& timeline, const Predecessors& predecessors, const TaskId& id) {
  Waited last;
  for (const TaskId member : dag.unit_of(id)) {
    for (const TaskId before : predecessors.of(member)) {
      if (last.task == no_id || timeline.end[before] > timeline.end[last.task] + instant) last = {before, member};
    }
  }
  return last;
}

/// Returns the stage of `to`, in a unit with a task on this stage, or waited for by one.
std::int32_t stage_beside(const Dag& dag, TaskId from, std::int32_t stage, TaskId to) {
  const Task& task = dag.tasks[to];
  if (from == to) return stage;
  const auto& [own, mirrored] = dag.ranks[task.rank].by_stage(dag.info.stages);
  if (mirrored.ranks == 0) return own.stage;
  const bool is_message = task.op == OpKind::send || task.op == OpKind::receive;
  const bool to_next = is_message && dag.tasks[from].group == task.group;
  const auto distance = [&](std::int32_t other) { return std::abs(other - stage); };
  return distance(mirrored.stage) == (to_next ? 1 : 0) ? mirrored.stage : own.stage;
}

}  // namespace

std::vector<PathSegment> critical_path(const Dag& dag, const Timeline& timeline) {
  std::vector<PathSegment> path;
  if (dag.tasks.empty()) return path;
  const Predecessors predecessors(dag);
  const Stretch stretch(timeline);
  const auto last = static_cast<TaskId>(std::ranges::max_element(timeline.end) - timeline.end.begin());
  Occurrence at{last, timeline.times_of(last).second};
  std::int32_t stage = dag.ranks[dag.tasks[last].rank].pp;
  Seconds reached = timeline.end_of(at.task, at.time);  // all from here on is in `path`
  const auto add = [&](TaskId id, Seconds from) {
    if (from >= reached) return;
    path.push_back({id, stage, from, reached});
    reached = from;
  };
  while (at.task != no_id) {
    const auto [waited_for, member] = last_before(dag, timeline, predecessors, at.task);
    const Occurrence before = waited_for == no_id ? Occurrence{} : stretch.before(waited_for, at);
    const Seconds ready = before.task == no_id ? 0 : timeline.end_of(before.task, before.time);
    const bool waits = timeline.start[at.task] > (waited_for == no_id ? 0 : timeline.end[waited_for]) + instant;
    add(at.task, waits ? timeline.start_of(at.task, at.time) : ready);
    if (waited_for != no_id) stage = stage_beside(dag, member, stage_beside(dag, at.task, stage, member), waited_for);
    add(no_id, ready);
    at = before;
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
