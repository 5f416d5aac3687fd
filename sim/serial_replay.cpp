#include "sim/serial_replay.h"

#include <algorithm>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/base/fetch_ahead.h"
#include "sim/host_issue.h"

namespace tandem::sim {

SerialReplay::SerialReplay(const Dag& dag)
    : dag_(dag),
      chains_(dag),
      issue_of_group_(dag.groups.size(), 0),
      places_(dag.ranks.size() + 1),
      waiting_for_(dag.tasks.size()),
      missing_(dag.groups.size()),
      come_(dag.groups.size(), 0),
      meets_others_(dag.tasks.size(), false),
      left_(dag.tasks.size()) {
  const IssueTimes issue(dag);
  for (const TaskId first : dag.first_of_kernel) issue_of_kernel_.push_back(issue.of(first).all());
  for (GroupId g = 0; g < dag.groups.size(); ++g) {
    const std::span<const TaskId> members = dag.members_of(g);
    missing_[g] = static_cast<std::uint32_t>(members.size());
    for (const TaskId member : members) issue_of_group_[g] = std::max(issue_of_group_[g], issue.of(member).all());
  }
  note_edges();
  lay_lanes();
}

void SerialReplay::note_edges() {
  for (TaskId before = 0; before < dag_.tasks.size(); ++before) {
    if (chains_.goes_on(before)) continue;
    const RankIndex rank = dag_.tasks[before].rank;
    for (const TaskId after : dag_.graph.successors(before)) {
      waiting_for_.add_one(after);
      if (dag_.tasks[after].rank == rank) continue;
      from_others_[after].push_back(before);
      end_for_others_.emplace(before, 0);
      meets_others_[before] = meets_others_[after] = true;
    }
  }
  for (TaskId id = 0; id < dag_.tasks.size(); ++id)
    if (dag_.tasks[id].group != no_id && waiting_for_.is_zero(id)) --missing_[dag_.tasks[id].group];
}

void SerialReplay::lay_lanes() {
  const auto stream_of = [&](TaskId id) {
    return dag_.tasks[id].rank * stream_count + static_cast<std::size_t>(dag_.tasks[id].stream);
  };
  const auto for_each_head = [&](const auto& action) {
    for (TaskId id = 0; id < dag_.tasks.size(); ++id)
      if (id == 0 || !chains_.goes_on(id - 1)) action(id);
  };
  std::vector<std::uint32_t> end(dag_.ranks.size() * stream_count, 0);  // by stream of a rank
  for_each_head([&](TaskId id) { ++end[stream_of(id)]; });
  std::uint32_t heads = 0;
  for (std::size_t stream = 0; stream < end.size(); ++stream) {
    const RankIndex rank = static_cast<RankIndex>(stream / stream_count);
    if (stream % stream_count == 0) places_[rank].first_lane = static_cast<std::uint32_t>(lanes_.size());
    if (end[stream] > 0) lanes_.push_back({.next = heads, .end = heads + end[stream]});
    heads += end[stream];
    end[stream] = heads - end[stream];
  }
  places_.back().first_lane = static_cast<std::uint32_t>(lanes_.size());
  heads_.resize(heads);
  for_each_head([&](TaskId id) { heads_[end[stream_of(id)]++] = id; });
}

void SerialReplay::set_head(Lane& lane, TaskId head) {
  lane.head = head;
  lane.group = head == no_id ? no_id : dag_.tasks[head].group;
  lane.instant = head == no_id ? never : instant_of_turn(timeline_->start[head]);
}

void SerialReplay::move_on(Lane& lane) {
  if (lane.head != no_id && chains_.goes_on(lane.head)) return set_head(lane, lane.head + 1);
  set_head(lane, lane.next < lane.end ? heads_[lane.next++] : no_id);
  if (lane.next == lane.end) return;
  // Lanes take turns, each somewhere else in memory.
  fetch(dag_.tasks, heads_[lane.next]);
  fetch(timeline_->start, heads_[lane.next]);
  fetch(waiting_for_, heads_[lane.next]);
}

TaskId SerialReplay::first_of_unit(const Lane& lane) const {
  return lane.group == no_id ? lane.head : dag_.members_of(lane.group).front();
}

bool SerialReplay::is_ready(const Lane& lane) const {
  if (lane.head == no_id) return false;
  return lane.group == no_id ? waiting_for_.is_zero(lane.head) : missing_[lane.group] == 0;
}

void SerialReplay::queue(RankIndex rank) {
  if (std::exchange(places_[rank].is_queued, true)) return;
  queue_.push_back(rank);
}

void SerialReplay::queue_all() {
  for (std::size_t rank = dag_.ranks.size(); rank-- > 0;) queue(static_cast<RankIndex>(rank));
}

std::optional<Seconds> SerialReplay::last_end(const Timeline& timeline, const KernelTimes* alone) {
  timeline_ = &timeline;
  has_durations_ = alone != nullptr;
  of_kernel_ = issue_of_kernel_;
  for (KernelId kernel = 0; has_durations_ && kernel < of_kernel_.size(); ++kernel)
    of_kernel_[kernel] += alone->of(dag_.first_of_kernel[kernel]);
  for (Lane& lane : lanes_) move_on(lane);
  queue_all();
  for (;;) {
    while (!queue_.empty()) {
      const RankIndex rank = queue_.back();
      queue_.pop_back();
      go_on(rank);
      places_[rank].is_queued = false;
    }
    if (left_ == 0) break;
    if (timeline_->repeat.times > 0 && !stretch_is_over_) {
      repeat_stretch();
      queue_all();
    } else if (!play_first_of_all()) {
      throw std::logic_error("a timeline can't be replayed: " + std::to_string(left_) + " tasks wait for each other");
    }
  }
  if (!stretch_is_over_) repeat_stretch();
  if (!is_in_one_go_) return {};
  Seconds last = 0;
  for (const Place& place : places_) last = std::max(last, place.free);
  return last;
}

SerialReplay::Picked SerialReplay::pick(RankIndex rank) {
  const std::span<Lane> lanes = lanes_of(rank);
  Picked picked;
  double first = never;
  for (Lane& lane : lanes) {  // in a few instructions and without a branch, which a processor could not guess
    picked.next_instant = std::min(picked.next_instant, std::max(first, lane.instant));
    picked.lane = lane.instant < first ? &lane : picked.lane;
    first = std::min(first, lane.instant);
  }
  if (picked.next_instant > first || picked.lane == nullptr) return picked;
  for (Lane& lane : lanes)
    if (lane.instant == first && first_of_unit(lane) < first_of_unit(*picked.lane)) picked.lane = &lane;
  return picked;
}

bool SerialReplay::waits_for_stretch(TaskId task) const {
  return timeline_->repeat.times > 0 && !stretch_is_over_ && timeline_->start[task] >= timeline_->repeat.to;
}

void SerialReplay::go_on(RankIndex rank) {
  for (;;) {
    const auto [lane, next_instant] = pick(rank);
    if (lane == nullptr || !is_ready(*lane) || waits_for_stretch(lane->head)) break;
    if (lane->group == no_id) {
      leave_collective(rank);
      play_chain(*lane, next_instant);
    } else if (have_all_come_to(rank, lane->group)) {
      play_collective(lane->group);
    } else {
      return;
    }
  }
  leave_collective(rank);
}

std::span<SerialReplay::Lane> SerialReplay::lanes_of(RankIndex rank) {
  return {lanes_.data() + places_[rank].first_lane, lanes_.data() + places_[rank + 1].first_lane};
}

/// Of a collective that is ready: all of its members are at the heads of their streams.
std::uint32_t SerialReplay::members_on(RankIndex rank, GroupId group) {
  return static_cast<std::uint32_t>(std::ranges::count(lanes_of(rank), group, &Lane::group));
}

/// The rank comes to it.
bool SerialReplay::have_all_come_to(RankIndex rank, GroupId group) {
  const std::size_t members = dag_.members_of(group).size();
  Place& place = places_[rank];
  if (place.stands_at != group) {
    leave_collective(rank);
    if (members == 1) return true;
    place.stands_at = group;
    come_[group] += members_on(rank, group);
  }
  return come_[group] == members;
}

void SerialReplay::leave_collective(RankIndex rank) {
  if (places_[rank].stands_at == no_id) return;
  const GroupId group = std::exchange(places_[rank].stands_at, no_id);
  come_[group] -= members_on(rank, group);
}

/// Plays what is at the head, and as much more of its chain as starts before this instant.
void SerialReplay::play_chain(Lane& lane, double until_instant) {
  play(lane.head);
  while (chains_.goes_on(lane.head)) {
    move_on(lane);
    if (lane.instant >= until_instant || waits_for_stretch(lane.head)) return;
    play(lane.head);
  }
  settle(lane.head);
  move_on(lane);
}

void SerialReplay::play_collective(GroupId group) {
  const std::span<const TaskId> members = dag_.members_of(group);
  play(members.front());
  for (const TaskId member : members) settle(member);
  for (const TaskId member : members) leave_collective(dag_.tasks[member].rank);
  for (const TaskId member : members) {
    const RankIndex rank = dag_.tasks[member].rank;
    move_on(*std::ranges::find(lanes_of(rank), member, &Lane::head));
    queue(rank);
  }
}

void SerialReplay::settle(TaskId task) {
  for (const TaskId after : dag_.graph.successors(task)) {
    if (!waiting_for_.count_down(after)) continue;
    const GroupId group = dag_.tasks[after].group;
    if (group == no_id)
      queue(dag_.tasks[after].rank);
    else if (--missing_[group] == 0)
      for (const TaskId member : dag_.members_of(group)) queue(dag_.tasks[member].rank);
  }
}

/// Tasks without length are of the instant of what waits for them, and dates of a timeline are sums, of which a task's end may be
/// an instant later than the start of what waits for it. Returns false if nothing is ready.
bool SerialReplay::play_first_of_all() {
  RankIndex of_first = 0;
  Lane* first = nullptr;
  for (RankIndex rank = 0; rank < dag_.ranks.size(); ++rank)
    for (Lane& lane : lanes_of(rank))
      if (is_ready(lane) &&
          (first == nullptr || std::pair(lane.instant, first_of_unit(lane)) < std::pair(first->instant, first_of_unit(*first)))) {
        first = &lane;
        of_first = rank;
      }
  if (first == nullptr) return false;
  if (first->group != no_id)
    play_collective(first->group);
  else
    play_chain(*first, first->instant);
  queue(of_first);
  return true;
}

/// Plays a unit.
void SerialReplay::play(TaskId first) {
  const Seconds length = length_of(first);
  left_ -= dag_.unit_of(first).size();
  if (timeline_->times(first) > 1) {
    stretch_.push_back({first, length});
    is_in_one_go_ = is_in_one_go_ && !stretch_is_over_ && !waits_for_earlier_stretches(first);
  }
  take(first, length);
}

Seconds SerialReplay::length_of(TaskId first) const {
  const GroupId group = dag_.tasks[first].group;
  if (group != no_id) return issue_of_group_[group] + timeline_->duration(first);
  return of_kernel_[dag_.tasks[first].kernel] + (has_durations_ ? 0 : timeline_->duration(first));
}

void SerialReplay::take(TaskId first, Seconds length) {
  const std::span<const TaskId> unit = dag_.unit_of(first);
  Seconds start = 0;
  for (const TaskId member : unit) {
    start = std::max(start, places_[dag_.tasks[member].rank].free);
    if (!meets_others_[member]) continue;
    if (const auto others = from_others_.find(member); others != from_others_.end())
      for (const TaskId before : others->second) start = std::max(start, end_for_others_.at(before));
  }
  // A folded rank that stands for both ends of a pair sends to one and receives from another.
  const bool has_both_ends = unit.size() == 2 && dag_.tasks[unit[0]].rank == dag_.tasks[unit[1]].rank;
  const Seconds end = start + (has_both_ends ? 2 : 1) * length;
  for (const TaskId member : unit) {
    places_[dag_.tasks[member].rank].free = end;
    if (!meets_others_[member]) continue;
    if (const auto awaited = end_for_others_.find(member); awaited != end_for_others_.end()) awaited->second = end;
  }
}

void SerialReplay::repeat_stretch() {
  stretch_is_over_ = true;
  for (std::int64_t time = 0; time < timeline_->repeat.times; ++time)
    for (const auto& [first, length] : stretch_) take(first, length);
}

bool SerialReplay::waits_for_earlier_stretches(TaskId task) const {
  return std::ranges::any_of(dag_.unit_of(task), [&](TaskId member) {
    const auto others = from_others_.find(member);
    return others != from_others_.end() &&
           std::ranges::any_of(others->second, [&](TaskId before) { return timeline_->times(before) == 1; });
  });
}

}  // namespace tandem::sim
