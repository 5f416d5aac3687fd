#include "sim/bounds.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/executor.h"
#include "sim/collective_cost.h"
#include "sim/host_issue.h"
#include "sim/kernel_times.h"

namespace tandem::sim {
namespace {

/// Replays durations with one task at a time on each rank, each issued by the CPU only when the one before has ended. Of what is
/// ready, what the timeline started first goes first: so a stretch that the timeline repeats is replayed in one go, and is then
/// replayed as often again as it repeats, at the times that come of it.
class OneAtATime final : public Backend {
 public:
  OneAtATime(const Timeline& timeline, const KernelTimes* alone) : timeline_(timeline), alone_(alone) {}

  bool has_one_thread() const override { return true; }

  void prepare(const Dag& dag, Completions& completions) override {
    dag_ = &dag;
    completions_ = &completions;
    issue_.emplace(dag);
    meets_others_.assign(dag.tasks.size(), false);
    for (TaskId before = 0; before < dag.tasks.size(); ++before)
      for (const TaskId after : dag.graph.successors(before))
        if (dag.tasks[after].rank != dag.tasks[before].rank) {
          from_others_[after].push_back(before);
          end_for_others_.emplace(before, 0);
          meets_others_[before] = meets_others_[after] = true;
        }
    rank_free_.assign(dag.ranks.size(), 0);
  }

  void start(std::span<const TaskId> unit) override {
    // Dates lie on round parts of a nanosecond more often than elsewhere. An instant that ended there would tell equal ones
    // apart.
    constexpr Seconds off_round_parts = 0.1816e-10;
    ready_.emplace(instant_of(timeline_.start[unit.front()] + off_round_parts), unit.front());
  }

  void drive() override {
    while (!ready_.empty()) {
      const TaskId task = ready_.top().second;
      ready_.pop();
      const bool repeats = timeline_.times(task) > 1;
      if (!repeats && !stretch_.empty() && !stretch_is_over_) repeat_stretch();
      Seconds issue = 0;
      for (const TaskId member : dag_->unit_of(task)) issue = std::max(issue, issue_->of(member).all());
      const Turn turn{task, issue + duration(task)};
      if (repeats) {
        stretch_.push_back(turn);
        is_in_one_go_ = is_in_one_go_ && !stretch_is_over_ && !waits_for_earlier_stretches(task);
      }
      const Seconds end = take(turn);
      completions_->ended(task, end - turn.length, end);
    }
    if (!stretch_is_over_) repeat_stretch();
  }

  /// Whether the stretch could be replayed as if it were there as often as it repeats.
  bool is_whole() const { return is_in_one_go_; }

 private:
  using Ready = std::pair<double, TaskId>;
  struct Turn {
    TaskId task = 0;  ///< the first of its unit
    Seconds length = 0;
  };
  const Timeline& timeline_;
  const KernelTimes* alone_;
  const Dag* dag_ = nullptr;
  Completions* completions_ = nullptr;
  std::optional<IssueTimes> issue_;
  /// By task, what it waits for on other ranks: when its own is free, all has ended that it waits for there.
  std::unordered_map<TaskId, std::vector<TaskId>> from_others_;
  std::unordered_map<TaskId, Seconds> end_for_others_;  ///< by task that one on another rank waits for
  std::vector<bool> meets_others_;                      ///< by task: whether it is among these or those
  std::vector<Seconds> rank_free_;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready_;
  std::vector<Turn> stretch_;  ///< in the order in which they came
  bool stretch_is_over_ = false, is_in_one_go_ = true;

  /// Returns when the unit has ended.
  Seconds take(const Turn& turn) {
    const std::span<const TaskId> unit = dag_->unit_of(turn.task);
    Seconds start = 0;
    for (const TaskId member : unit) {
      start = std::max(start, rank_free_[dag_->tasks[member].rank]);
      if (!meets_others_[member]) continue;
      if (const auto others = from_others_.find(member); others != from_others_.end())
        for (const TaskId before : others->second) start = std::max(start, end_for_others_.at(before));
    }
    const Seconds end = start + turn.length;
    for (const TaskId member : unit) {
      rank_free_[dag_->tasks[member].rank] = end;
      if (!meets_others_[member]) continue;
      if (const auto awaited = end_for_others_.find(member); awaited != end_for_others_.end()) awaited->second = end;
    }
    return end;
  }

  void repeat_stretch() {
    stretch_is_over_ = true;
    for (std::int64_t time = 0; time < timeline_.repeat.times; ++time)
      for (const Turn& turn : stretch_) take(turn);
  }

  /// In the step, what repeats waits on another rank for something of the stretch before it, which is not told here from others.
  bool waits_for_earlier_stretches(TaskId task) const {
    return std::ranges::any_of(dag_->unit_of(task), [&](TaskId member) {
      const auto others = from_others_.find(member);
      return others != from_others_.end() &&
             std::ranges::any_of(others->second, [&](TaskId before) { return timeline_.times(before) == 1; });
    });
  }

  Seconds duration(TaskId task) const {
    return alone_ == nullptr || is_communication(dag_->tasks[task].op) ? timeline_.duration(task) : alone_->of(task);
  }
};

}  // namespace

Seconds lower_bound(const Dag& dag, const KernelTimes& times, const Timeline& timeline) {
  std::vector<Seconds> compute(dag.ranks.size(), 0), on_host = compute;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (!is_communication(task.op))
      (task.stream == Stream::host ? on_host : compute)[task.rank] += timeline.times(id) * times.lower_bound_of(id);
  }
  Seconds longest = 0;  // of the transfers that their protocol holds back
  std::vector<double> link_bytes(dag.links.size(), 0);
  CollectiveCosts costs(dag);
  for (GroupId g = 0; g < dag.groups.size(); ++g) {
    const Group& group = dag.groups[g];
    const Communicator& communicator = dag.communicators[group.communicator];
    const TaskId first_id = dag.members_of(g).front();
    const Task& first = dag.tasks[first_id];
    const CollectiveCost& cost = costs.of(first);
    if (cost.rate_limit > 0) longest = std::max(longest, static_cast<double>(cost.bytes_per_channel) / cost.rate_limit);
    for (const Crossing& crossing : communicator.layout.paths[cost.paths].crossings) {
      link_bytes[crossing.link] += timeline.times(first_id) * static_cast<double>(cost.bytes_per_channel) * crossing.multiplicity;
    }
  }
  Seconds bound = compute.empty() ? longest : std::max(longest, *std::max_element(compute.begin(), compute.end()));
  for (const Seconds computing : on_host) bound = std::max(bound, computing);
  for (const Seconds issuing : issue_times(dag, timeline)) bound = std::max(bound, issuing);
  for (LinkId link = 0; link < dag.links.size(); ++link) bound = std::max(bound, link_bytes[link] / dag.links[link].capacity);
  return bound;
}

Seconds upper_bound(const Dag& dag, const Timeline& timeline, const KernelTimes* alone) {
  OneAtATime replay(timeline, alone);
  const Seconds last_end = last_end_on(dag, replay);
  if (!replay.is_whole()) return std::numeric_limits<Seconds>::infinity();
  return std::max(timeline.makespan(), before_first_kernel(dag) + last_end);
}

}  // namespace tandem::sim
