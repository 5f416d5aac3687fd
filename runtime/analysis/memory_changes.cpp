#include "runtime/analysis/memory_changes.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "runtime/analysis/framework_memory.h"

namespace tandem {
namespace {

struct Lifetime {
  Seconds begin = std::numeric_limits<Seconds>::max();
  Seconds end = -1;
};

/// By buffer; those of views stand under what they are views of.
std::vector<Lifetime> lifetimes(const Dag& dag, const Timeline& timeline) {
  std::vector<Lifetime> lives(dag.buffers.size());
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    for (const Operand& operand : dag.operands_of(id)) {
      Lifetime& life = lives[dag.buffers[operand.buffer].base];
      life.begin = std::min(life.begin, timeline.start[id]);
      life.end = std::max(life.end, timeline.end[id]);
    }
  }
  return lives;
}

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

void add_what_frameworks_hold(const Dag& dag, const Timeline& timeline, MemoryChanges& changes) {
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (is_communication(task.op) || is_fused(dag.attributes[task.attributes])) continue;
    double held = dag.software.beside(task.op, pass_of(task.phase)).holds;
    const Bytes placeholder = passing_placeholder(dag, id);
    if (held == 0 && placeholder == 0) continue;
    const BufferId largest = largest_operand(dag, id);
    const auto elements = static_cast<double>(dag.buffers[largest].shape.elements());
    const auto add = [&](Bytes bytes) {
      changes[task.rank].push_back({timeline.start[id], bytes, dag.buffers[largest].base, true});
      changes[task.rank].push_back({timeline.end[id], -bytes, dag.buffers[largest].base, true});
    };
    if (placeholder > 0) add(placeholder);
    // Tensors of fp32 at most, each for itself.
    constexpr double widest = 4;
    for (; held > 0; held -= widest) add(static_cast<Bytes>(std::min(held, widest) * elements));
  }
}

}  // namespace

MemoryChanges memory_changes(const Dag& dag, const Timeline& timeline) {
  MemoryChanges changes(dag.ranks.size());
  const std::vector<Lifetime> lives = lifetimes(dag, timeline);
  for (BufferId id = 0; id < dag.buffers.size(); ++id) {
    const Buffer& buffer = dag.buffers[id];
    if (buffer.base != id || is_persistent(buffer.kind) || lives[id].end < 0) continue;
    const Bytes bytes = buffer.bytes();
    const bool is_activation = buffer.kind == BufferKind::activation;
    changes[buffer.rank].push_back({lives[id].begin, bytes, id, is_activation});
    changes[buffer.rank].push_back({lives[id].end, -bytes, id, is_activation});
  }
  add_what_frameworks_hold(dag, timeline, changes);
  for (std::vector<MemoryChange>& of_rank : changes) {
    // Equal ones stay in the order of their buffers, however many there are.
    std::ranges::stable_sort(of_rank, [](const MemoryChange& a, const MemoryChange& b) {
      if (instant_of(a.at) != instant_of(b.at)) return a.at < b.at;
      return a.bytes < b.bytes;
    });
  }
  return changes;
}

}  // namespace tandem
