#include "runtime/analysis/graph_memory.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_map>

namespace tandem {
namespace {

Bytes fullest(const std::vector<MemoryChange>& changes, MemoryHome home) {
  Bytes now = 0, most = 0;
  for (const MemoryChange& change : changes)
    if (change.home == home) most = std::max(most, now += change.bytes);
  return most;
}

void add_to(Lifetime& life, Seconds begin, Seconds end) {
  life.begin = std::min(life.begin, begin);
  life.end = std::max(life.end, end);
}

class BuffersOfGraphs {
 public:
  BuffersOfGraphs(const Dag& dag, const Timeline& timeline, const CapturedTasks& captured, const ByRank& tasks,
                  const ByRank& buffers, RankIndex rank)
      : dag_(dag), timeline_(timeline), captured_(captured), tasks_(tasks), buffers_(buffers), rank_(rank) {
    result_.lives.resize(buffers.count(rank));
    if (captured.empty()) return;
    first_.assign(buffers.count(rank), no_id);
    tasks.for_each(rank, [&](TaskId id) {
      for (const Operand& operand : dag.operands_of(id)) {
        TaskId& first = first_[place_of(dag.buffers[operand.buffer].base)];
        if (first == no_id) first = id;
      }
    });
  }

  GraphBuffers find() {
    if (!captured_.empty()) {
      result_.in_pool.resize(first_.size());
      for (std::size_t place = 0; place < first_.size(); ++place)
        result_.in_pool[place] = first_[place] != no_id && captured_.of(first_[place]) != no_id &&
                                 !is_persistent(dag_.buffers[buffers_.id(rank_, place)].kind);
      for (const std::uint32_t i : captured_.on_rank[rank_]) ends_.emplace(i, end_of(captured_.callables[i]));
      if (held_graphs(dag_.software) == HeldGraphs::layers)
        for (const std::uint32_t i : captured_.on_rank[rank_]) add_copies(i);
    }
    tasks_.for_each(rank_, [&](TaskId id) {
      for (const Operand& operand : dag_.operands_of(id)) touch(id, dag_.buffers[operand.buffer].base);
    });
    return std::move(result_);
  }

 private:
  const Dag& dag_;
  const Timeline& timeline_;
  const CapturedTasks& captured_;
  const ByRank &tasks_, &buffers_;
  const RankIndex rank_;
  std::vector<TaskId> first_;  ///< by place of a buffer, the task that touches it first; empty where nothing is captured
  std::unordered_map<std::uint32_t, Seconds> ends_;  ///< by callable
  std::set<std::pair<std::uint32_t, BufferId>> inputs_;
  GraphBuffers result_;

  std::size_t place_of(BufferId id) const { return buffers_.place(rank_, id); }
  TaskId first_to_touch(BufferId id) const { return first_[place_of(id)]; }

  /// When a forward graph begins.
  Seconds start_of(const GraphCallable& callable) const { return timeline_.start[callable.forward.front()]; }
  Seconds end_of(const GraphCallable& callable) const {
    Seconds end = 0;
    for (const auto* tasks : {&callable.forward, &callable.backward})
      for (const TaskId id : *tasks) end = std::max(end, timeline_.end[id]);
    return end;
  }

  /// What tasks of a callable read that others of their micro-batch have written.
  std::set<BufferId> read_from_outside(std::uint32_t callable, const std::vector<TaskId>& tasks) const {
    std::set<BufferId> read;
    for (const TaskId id : tasks)
      for (const Operand& operand : dag_.operands_of(id)) {
        const BufferId base = dag_.buffers[operand.buffer].base;
        if (operand.access() == Access::write || is_persistent(dag_.buffers[base].kind)) continue;
        const bool of_micro_batch =
            dag_.tasks[first_to_touch(base)].micro_batch == dag_.tasks[id].micro_batch;  // and no cast weight
        if (of_micro_batch && captured_.of(first_to_touch(base)) != callable) read.insert(base);
      }
    return read;
  }

  void add_copies(std::uint32_t i) {
    const GraphCallable& callable = captured_.callables[i];
    const std::set<BufferId> inputs = read_from_outside(i, callable.forward);
    for (const BufferId input : inputs) {
      inputs_.insert({i, input});
      result_.copies.push_back({input, {start_of(callable), ends_.at(i)}, MemoryHome::graph_inputs});
    }
    if (callable.backward.empty()) return;
    const TaskId first = callable.backward.front();  // by whose end the next graph may have the copies
    for (const BufferId gradient : read_from_outside(i, callable.backward))
      if (!inputs.contains(gradient))
        result_.copies.push_back({gradient, {timeline_.start[first], timeline_.end[first]}, MemoryHome::graph_gradients});
  }

  void touch(TaskId id, BufferId base) {
    const std::size_t place = place_of(base);
    Lifetime& life = result_.lives[place];
    const std::uint32_t by = captured_.of(id);
    if (by != no_id && inputs_.contains({by, base})) {  // which reads its copy
      const Seconds copied = start_of(captured_.callables[by]);
      return add_to(life, copied, copied);
    }
    add_to(life, timeline_.start[id], timeline_.end[id]);
    const std::uint32_t owner = result_.home_of(place) == MemoryHome::graph_pool ? captured_.of(first_[place]) : no_id;
    const bool returned = owner != no_id && by != owner && dag_.tasks[first_[place]].phase == Phase::forward;
    if (returned) life.end = std::max(life.end, ends_.at(owner));
  }
};

}  // namespace

GraphMemory graph_memory(const std::vector<MemoryChange>& of_rank) {
  GraphMemory memory{.inputs = fullest(of_rank, MemoryHome::graph_inputs),
                     .gradients = fullest(of_rank, MemoryHome::graph_gradients)};
  Bytes activations = 0, buffers = 0;
  for (const MemoryChange& change : of_rank) {
    if (change.home != MemoryHome::graph_pool) continue;
    (change.is_activation ? activations : buffers) += change.bytes;
    if (activations + buffers <= memory.pool_activations + memory.pool_buffers) continue;
    memory.pool_activations = activations;
    memory.pool_buffers = buffers;
    memory.fullest_at = change.at;
  }
  return memory;
}

std::vector<MemoryChange> changes_in(MemoryHome home, const std::vector<MemoryChange>& of_rank) {
  std::vector<MemoryChange> changes;
  std::ranges::copy_if(of_rank, std::back_inserter(changes), [=](const MemoryChange& change) { return change.home == home; });
  return changes;
}

std::vector<MemoryChange> changes_in(MemoryHome home, std::vector<MemoryChange>&& of_rank) {
  std::erase_if(of_rank, [=](const MemoryChange& change) { return change.home != home; });
  return std::move(of_rank);
}

GraphBuffers graph_buffers(const Dag& dag, const Timeline& timeline, const CapturedTasks& captured, const ByRank& tasks,
                           const ByRank& buffers, RankIndex rank) {
  return BuffersOfGraphs(dag, timeline, captured, tasks, buffers, rank).find();
}

}  // namespace tandem
