#include "studies/search/buffer_lives.h"

#include <algorithm>

namespace tandem::studies {
namespace {

/// By task: the last kernel of its rank that has ended when it begins, whatever the times.
std::vector<TaskId> kernels_before(const Dag& dag, const std::vector<TaskId>& order, RankIndex rank) {
  std::vector<TaskId> before(dag.tasks.size(), no_id);
  for (const TaskId first : order) {
    for (const TaskId member : dag.unit_of(first)) {
      if (dag.tasks[member].rank != rank) continue;
      const TaskId last = dag.tasks[member].stream == Stream::compute ? member : before[member];
      if (last == no_id) continue;
      for (const TaskId next : dag.graph.successors(member))
        if (dag.tasks[next].rank == rank && (before[next] == no_id || before[next] < last)) before[next] = last;
    }
  }
  return before;
}

}  // namespace

std::vector<BufferLife> buffer_lives(const Dag& dag, const std::vector<TaskId>& order, RankIndex rank) {
  std::vector<BufferLife> lives(dag.buffers.size());
  const auto life_of = [&](const Operand& operand) -> BufferLife& { return lives[dag.buffers[operand.buffer].base]; };
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.tasks[id].rank != rank || dag.tasks[id].stream != Stream::compute) continue;
    for (const Operand& operand : dag.operands_of(id)) {
      BufferLife& life = life_of(operand);
      if (life.first == no_id) life.first = id;
      life.last = id;
    }
  }
  const std::vector<TaskId> before = kernels_before(dag, order, rank);
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.tasks[id].rank != rank || dag.tasks[id].stream == Stream::compute || before[id] == no_id) continue;
    for (const Operand& operand : dag.operands_of(id))
      if (BufferLife& life = life_of(operand); life.first != no_id) life.last = std::max(life.last, before[id]);
  }
  return lives;
}

}  // namespace tandem::studies
