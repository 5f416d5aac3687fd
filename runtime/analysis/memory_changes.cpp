#include "runtime/analysis/memory_changes.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "runtime/analysis/captured_tasks.h"
#include "runtime/analysis/framework_memory.h"
#include "runtime/analysis/graph_memory.h"
#include "runtime/base/radix_sort.h"

namespace tandem {
namespace {

/// A buffer of its own that does not live for the whole step.
bool comes_and_goes(const Dag& dag, BufferId id) { return dag.buffers[id].base == id && !is_persistent(dag.buffers[id].kind); }

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

/// By kernel, the bytes per element of its largest operand that a framework holds beside it; none where another kernel does its
/// work.
std::vector<std::optional<double>> held_beside(const Dag& dag) {
  std::vector<std::optional<double>> held;
  for (const TaskId first : dag.kernels.first) {
    const Task& task = dag.tasks[first];
    held.push_back(is_fused(dag.attributes[task.attributes])
                       ? std::nullopt
                       : std::optional(dag.software.beside(task.op, pass_of(task.phase)).holds));
  }
  return held;
}

void add_what_frameworks_hold(const Dag& dag, const Timeline& timeline, const CapturedTasks& captured, MemoryChanges& changes) {
  const std::vector<std::optional<double>> held_by_kernel = held_beside(dag);
  const bool holds = std::ranges::any_of(held_by_kernel, [](const auto& held) { return held.value_or(0) > 0; });
  if (!holds && !dag.software.placeholder_gradients) return;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    const KernelId kernel = dag.kernels.of_task[id];
    if (kernel == no_id || !held_by_kernel[kernel]) continue;
    double held = *held_by_kernel[kernel];
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
    std::uint64_t instant = 0;
    std::uint32_t place = 0;
  };
  std::vector<Key> keys;
  keys.reserve(changes.size());
  for (const MemoryChange& change : changes)
    keys.push_back({static_cast<std::uint64_t>(instant_of(change.at)), static_cast<std::uint32_t>(keys.size())});
  radix_sort(keys, [](const Key& key) { return key.instant; });
  for (auto begin = keys.begin(); begin != keys.end();) {
    const auto end = std::find_if(begin, keys.end(), [&](const Key& key) { return key.instant != begin->instant; });
    std::sort(begin, end, [&](const Key& a, const Key& b) {
      const Bytes of_a = changes[a.place].bytes, of_b = changes[b.place].bytes;
      return of_a != of_b ? of_a < of_b : a.place < b.place;
    });
    begin = end;
  }
  std::vector<MemoryChange> ordered;
  ordered.reserve(changes.size());
  for (const Key& key : keys) ordered.push_back(changes[key.place]);
  return ordered;
}

}  // namespace

MemoryChanges memory_changes(const Dag& dag, const Timeline& timeline) {
  MemoryChanges changes(dag.ranks.size());
  std::vector<std::size_t> buffers(dag.ranks.size(), 0);
  for (BufferId id = 0; id < dag.buffers.size(); ++id)
    if (comes_and_goes(dag, id)) ++buffers[dag.buffers[id].rank];
  for (RankIndex rank = 0; rank < changes.size(); ++rank) changes[rank].reserve(2 * buffers[rank]);
  const CapturedTasks captured = captured_tasks(dag);
  const GraphBuffers graphs = graph_buffers(dag, timeline, captured);
  const auto add = [&](BufferId id, const Lifetime& life, MemoryHome home) {
    const Buffer& buffer = dag.buffers[id];
    if (life.end < 0) return;
    const bool is_activation = buffer.kind == BufferKind::activation;
    changes[buffer.rank].push_back({life.begin, buffer.bytes(), id, is_activation, home});
    changes[buffer.rank].push_back({life.end, -buffer.bytes(), id, is_activation, home});
  };
  for (BufferId id = 0; id < dag.buffers.size(); ++id)
    if (comes_and_goes(dag, id)) add(id, graphs.lives[id], graphs.home_of(id));
  for (const GraphBuffers::Copy& copy : graphs.copies) add(copy.of, copy.life, copy.home);
  add_what_frameworks_hold(dag, timeline, captured, changes);
  for (std::vector<MemoryChange>& of_rank : changes) of_rank = in_order(of_rank);
  return changes;
}

}  // namespace tandem
