#include "runtime/analysis/graph_memory.h"

#include <algorithm>
#include <iterator>
#include <set>

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

class Buffers {
 public:
  Buffers(const Dag& dag, const Timeline& timeline, const CapturedTasks& captured)
      : dag_(dag), timeline_(timeline), captured_(captured) {
    result_.lives.resize(dag.buffers.size());
    if (captured.empty()) return;
    first_.assign(dag.buffers.size(), no_id);
    for (TaskId id = 0; id < dag.tasks.size(); ++id)
      for (const Operand& operand : dag.operands_of(id)) {
        TaskId& first = first_[dag.buffers[operand.buffer].base];
        if (first == no_id) first = id;
      }
  }

  GraphBuffers find() {
    if (!captured_.empty()) {
      result_.in_pool.resize(dag_.buffers.size());
      for (BufferId id = 0; id < first_.size(); ++id)
        result_.in_pool[id] = first_[id] != no_id && captured_.of(first_[id]) != no_id && !is_persistent(dag_.buffers[id].kind);
      for (const GraphCallable& callable : captured_.callables) ends_.push_back(end_of(callable));
      if (held_graphs(dag_.software) == HeldGraphs::layers)
        for (std::uint32_t i = 0; i < captured_.callables.size(); ++i) add_copies(i);
    }
    for (TaskId id = 0; id < dag_.tasks.size(); ++id)
      for (const Operand& operand : dag_.operands_of(id)) touch(id, dag_.buffers[operand.buffer].base);
    return std::move(result_);
  }

 private:
  const Dag& dag_;
  const Timeline& timeline_;
  const CapturedTasks& captured_;
  std::vector<TaskId> first_;  ///< by buffer, the task that touches it first; empty where nothing is captured
  std::vector<Seconds> ends_;  ///< by callable
  std::set<std::pair<std::uint32_t, BufferId>> inputs_;
  GraphBuffers result_;

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
        const bool of_micro_batch = dag_.tasks[first_[base]].micro_batch == dag_.tasks[id].micro_batch;  // and no cast weight
        if (of_micro_batch && captured_.of(first_[base]) != callable) read.insert(base);
      }
    return read;
  }

  void add_copies(std::uint32_t i) {
    const GraphCallable& callable = captured_.callables[i];
    const std::set<BufferId> inputs = read_from_outside(i, callable.forward);
    for (const BufferId input : inputs) {
      inputs_.insert({i, input});
      result_.copies.push_back({input, {start_of(callable), ends_[i]}, MemoryHome::graph_inputs});
    }
    if (callable.backward.empty()) return;
    const TaskId first = callable.backward.front();  // by whose end the next graph may have the copies
    for (const BufferId gradient : read_from_outside(i, callable.backward))
      if (!inputs.contains(gradient))
        result_.copies.push_back({gradient, {timeline_.start[first], timeline_.end[first]}, MemoryHome::graph_gradients});
  }

  void touch(TaskId id, BufferId base) {
    Lifetime& life = result_.lives[base];
    const std::uint32_t by = captured_.of(id);
    if (by != no_id && inputs_.contains({by, base})) {  // which reads its copy
      const Seconds copied = start_of(captured_.callables[by]);
      return add_to(life, copied, copied);
    }
    add_to(life, timeline_.start[id], timeline_.end[id]);
    const std::uint32_t owner = result_.home_of(base) == MemoryHome::graph_pool ? captured_.of(first_[base]) : no_id;
    const bool returned = owner != no_id && by != owner && dag_.tasks[first_[base]].phase == Phase::forward;
    if (returned) life.end = std::max(life.end, ends_[owner]);
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

GraphBuffers graph_buffers(const Dag& dag, const Timeline& timeline, const CapturedTasks& captured) {
  return Buffers(dag, timeline, captured).find();
}

}  // namespace tandem
