#include "runtime/plan/arena.h"

#include <algorithm>
#include <array>
#include <map>

#include "runtime/base/divide_up.h"

namespace tandem {
namespace {

constexpr std::uint32_t never = 0xFFFFFFFF;

using TaskByStream = std::array<TaskId, stream_count>;

TaskByStream nobody() {
  TaskByStream tasks;
  tasks.fill(no_id);
  return tasks;
}

/// A rank's memory while the order is walked through: what is free, and who touched it last.
class Memory {
 public:
  /// `place` says where in the order a task stands.
  explicit Memory(const std::vector<std::uint32_t>& place) : place_(&place) {}

  Bytes size() const { return size_; }

  /// Where `bytes` fit best: the smallest gap, or the end. Adds to `before` those who touched it last.
  Bytes take(Bytes bytes, TaskByStream& before) {
    auto best = free_.end();
    for (auto gap = free_.begin(); gap != free_.end(); ++gap) {
      if (length(gap) >= bytes && (best == free_.end() || length(gap) < length(best))) best = gap;
    }
    if (best == free_.end()) best = grow(bytes);
    const Bytes begin = best->first, end = best->second;
    free_.erase(best);
    if (begin + bytes < end) free_.emplace(begin + bytes, end);

    for (auto part = split(begin); part != touched_.end() && part->first < begin + bytes; part = touched_.erase(part)) {
      split(begin + bytes);
      for (std::size_t s = 0; s < stream_count; ++s) before[s] = later(before[s], part->second.by[s]);
    }
    return begin;
  }

  void give_back(Bytes begin, Bytes bytes, const TaskByStream& by) {
    touched_.emplace(begin, Touched{begin + bytes, by});
    auto gap = free_.emplace(begin, begin + bytes).first;
    if (const auto next = std::next(gap); next != free_.end() && next->first == gap->second) {
      gap->second = next->second;
      free_.erase(next);
    }
    if (gap != free_.begin() && std::prev(gap)->second == gap->first) {
      std::prev(gap)->second = gap->second;
      free_.erase(gap);
    }
  }

 private:
  struct Touched {
    Bytes end = 0;
    TaskByStream by;
  };
  using Gaps = std::map<Bytes, Bytes>;  ///< begin, end

  const std::vector<std::uint32_t>* place_;
  Bytes size_ = 0;
  Gaps free_;
  std::map<Bytes, Touched> touched_;  ///< of free memory that was in use, by begin

  static Bytes length(Gaps::iterator gap) { return gap->second - gap->first; }
  TaskId later(TaskId a, TaskId b) const { return a == no_id || (b != no_id && (*place_)[b] > (*place_)[a]) ? b : a; }

  /// The last gap, made long enough, or a new one at the end.
  Gaps::iterator grow(Bytes bytes) {
    const bool gap_at_end = !free_.empty() && std::prev(free_.end())->second == size_;
    const Bytes begin = gap_at_end ? std::prev(free_.end())->first : size_;
    size_ = begin + bytes;
    return free_.insert_or_assign(begin, size_).first;
  }

  /// The first part that begins at `at` or after, where one that `at` lies inside of is cut in two.
  std::map<Bytes, Touched>::iterator split(Bytes at) {
    auto next = touched_.lower_bound(at);
    if (next == touched_.begin()) return next;
    const auto part = std::prev(next);
    if (part->second.end <= at) return next;
    next = touched_.emplace_hint(next, at, part->second);
    part->second.end = at;
    return next;
  }
};

struct Use {
  std::uint32_t first = never, last = 0;  ///< places in the order
  TaskByStream first_tasks = nobody(), last_tasks = nobody();
};

Bytes aligned(Bytes bytes) { return round_up(bytes, arena_alignment); }

/// No task of one stream knows what the others have waited for: each stream's first must wait for each stream's last.
void add_waits(const TaskByStream& first, const TaskByStream& before, ArenaPlan& plan) {
  for (std::size_t s = 0; s < stream_count; ++s) {
    for (std::size_t other = 0; other < stream_count; ++other) {
      if (s != other && first[s] != no_id && before[other] != no_id) plan.waits.push_back({first[s], before[other]});
    }
  }
}

}  // namespace

ArenaPlan plan_arena(const Dag& dag, const std::vector<TaskId>& order, const std::function<Bytes(const Buffer&)>& bytes_of) {
  ArenaPlan plan;
  plan.offset.assign(dag.buffers.size(), 0);
  plan.size.assign(dag.ranks.size(), 0);
  plan.persistent.assign(dag.ranks.size(), 0);
  plan.alive.assign(dag.ranks.size(), 0);

  std::vector<std::uint32_t> place(dag.tasks.size(), never);
  std::vector<Use> uses(dag.buffers.size());
  std::uint32_t now = 0;
  for (const TaskId first : order) {
    for (const TaskId id : dag.unit_of(first)) {
      place[id] = now;
      for (const Operand& operand : dag.operands_of(id)) {
        Use& use = uses[dag.buffers[operand.buffer].base];
        const auto stream = static_cast<std::size_t>(dag.tasks[id].stream);
        if (use.first == never) use.first = now;
        if (use.first_tasks[stream] == no_id) use.first_tasks[stream] = id;
        use.last = now;
        use.last_tasks[stream] = id;
      }
    }
    ++now;
  }

  std::vector<std::vector<BufferId>> begin(order.size()), end(order.size());
  for (BufferId id = 0; id < dag.buffers.size(); ++id) {
    const Buffer& buffer = dag.buffers[id];
    if (buffer.base != id) continue;
    if (keeps_its_place(buffer)) {
      plan.offset[id] = plan.persistent[buffer.rank];
      plan.persistent[buffer.rank] += aligned(bytes_of(buffer));
    } else if (uses[id].first != never) {
      begin[uses[id].first].push_back(id);
      end[uses[id].last].push_back(id);
    }
  }

  std::vector<Memory> memory(dag.ranks.size(), Memory(place));
  std::vector<Bytes> alive(dag.ranks.size(), 0);
  for (std::uint32_t at = 0; at < order.size(); ++at) {
    for (const BufferId id : begin[at]) {
      const RankIndex rank = dag.buffers[id].rank;
      const Bytes bytes = aligned(bytes_of(dag.buffers[id]));
      TaskByStream before = nobody();
      plan.offset[id] = plan.persistent[rank] + memory[rank].take(bytes, before);
      add_waits(uses[id].first_tasks, before, plan);
      alive[rank] += bytes;
      plan.alive[rank] = std::max(plan.alive[rank], plan.persistent[rank] + alive[rank]);
    }
    for (const BufferId id : end[at]) {
      const RankIndex rank = dag.buffers[id].rank;
      const Bytes bytes = aligned(bytes_of(dag.buffers[id]));
      memory[rank].give_back(plan.offset[id] - plan.persistent[rank], bytes, uses[id].last_tasks);
      alive[rank] -= bytes;
    }
  }
  for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) {
    plan.size[rank] = plan.persistent[rank] + memory[rank].size();
    plan.alive[rank] = std::max(plan.alive[rank], plan.persistent[rank]);
  }
  return plan;
}

}  // namespace tandem
