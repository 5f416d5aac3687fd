#include "runtime/analysis/memory_changes.h"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>

#include "runtime/analysis/captured_tasks.h"
#include "runtime/analysis/framework_memory.h"
#include "runtime/analysis/graph_memory.h"

namespace tandem {
namespace {

/// The buffer with the most elements among those that the task touches.
BufferId largest_operand(const Dag& dag, TaskId id) {
  BufferId largest = no_id;
  std::int64_t most = -1;
  for (const Operand& operand : dag.operands_of(id)) {
    const std::int64_t elements = dag.buffers[operand.buffer].shape.elements();
    if (elements > most) std::tie(largest, most) = std::pair{operand.buffer, elements};
  }
  return largest;
}

void add_what_frameworks_hold(const Dag& dag, const Timeline& timeline, const CapturedTasks& captured, MemoryChanges& changes) {
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (is_communication(task.op) || is_fused(dag.attributes[task.attributes])) continue;
    double held = dag.software.beside(task.op, pass_of(task.phase)).holds;
    const Bytes placeholder = passing_placeholder(dag, id);
    if (held == 0 && placeholder == 0) continue;
    const BufferId largest = largest_operand(dag, id);
    const auto elements = static_cast<double>(dag.buffers[largest].shape.elements());
    const MemoryHome home = captured.of(id) == no_id ? MemoryHome::allocator : MemoryHome::graph_pool;
    const auto add = [&](Bytes bytes) {
      changes[task.rank].push_back({timeline.start[id], bytes, dag.buffers[largest].base, true, home});
      changes[task.rank].push_back({timeline.end[id], -bytes, dag.buffers[largest].base, true, home});
    };
    if (placeholder > 0) add(placeholder);
    // Tensors of fp32 at most, each for itself.
    constexpr double widest = 4;
    for (; held > 0; held -= widest) add(static_cast<Bytes>(std::min(held, widest) * elements));
  }
}

/// Equal ones stay in the order of their buffers, however many there are.
std::vector<MemoryChange> in_order(const std::vector<MemoryChange>& changes) {
  struct Key {
    double instant = 0;
    Bytes bytes = 0;
    std::uint32_t place = 0;
    auto operator<=>(const Key&) const = default;
  };
  std::vector<Key> keys;
  keys.reserve(changes.size());
  for (const MemoryChange& change : changes)
    keys.push_back({instant_of(change.at), change.bytes, static_cast<std::uint32_t>(keys.size())});
  std::ranges::sort(keys);
  std::vector<MemoryChange> ordered;
  ordered.reserve(changes.size());
  for (const Key& key : keys) ordered.push_back(changes[key.place]);
  return ordered;
}

}  // namespace

MemoryChanges memory_changes(const Dag& dag, const Timeline& timeline) {
  MemoryChanges changes(dag.ranks.size());
  const CapturedTasks captured = captured_tasks(dag);
  const GraphBuffers graphs = graph_buffers(dag, timeline, captured);
  const auto add = [&](BufferId id, const Lifetime& life, MemoryHome home) {
    const Buffer& buffer = dag.buffers[id];
    if (life.end < 0) return;
    const bool is_activation = buffer.kind == BufferKind::activation;
    changes[buffer.rank].push_back({life.begin, buffer.bytes(), id, is_activation, home});
    changes[buffer.rank].push_back({life.end, -buffer.bytes(), id, is_activation, home});
  };
  for (BufferId id = 0; id < dag.buffers.size(); ++id) {
    const Buffer& buffer = dag.buffers[id];
    if (buffer.base == id && !is_persistent(buffer.kind)) add(id, graphs.lives[id], graphs.home_of(id));
  }
  for (const GraphBuffers::Copy& copy : graphs.copies) add(copy.of, copy.life, copy.home);
  add_what_frameworks_hold(dag, timeline, captured, changes);
  for (std::vector<MemoryChange>& of_rank : changes) of_rank = in_order(of_rank);
  return changes;
}

}  // namespace tandem
