#include "runtime/analysis/lifetimes.h"

#include <algorithm>

namespace tandem {

std::vector<Lifetime> lifetimes_of(const Dag& dag, const Timeline& timeline) {
  std::vector<Lifetime> lifetimes(dag.buffers.size());
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    for (const Operand& operand : dag.operands_of(id)) {
      Lifetime& life = lifetimes[dag.buffers[operand.buffer].base];
      if (life.first == no_id || timeline.start[id] < life.begin) {
        life.begin = timeline.start[id];
        life.first = id;
      }
      life.end = std::max(life.end, timeline.end[id]);
    }
  }
  return lifetimes;
}

MemoryChanges memory_changes(const Dag& dag, const std::vector<Lifetime>& lifetimes) {
  MemoryChanges changes(dag.ranks.size());
  for (BufferId id = 0; id < dag.buffers.size(); ++id) {
    const Buffer& buffer = dag.buffers[id];
    const Lifetime& life = lifetimes[id];
    if (buffer.base != id || is_persistent(buffer.kind) || life.first == no_id) continue;
    const bool is_activation = buffer.kind == BufferKind::activation;
    changes[buffer.rank].push_back({life.begin, buffer.bytes(), id, is_activation});
    changes[buffer.rank].push_back({life.end, -buffer.bytes(), id, is_activation});
  }
  for (std::vector<MemoryChange>& of_rank : changes) {
    std::ranges::sort(of_rank, [](const MemoryChange& a, const MemoryChange& b) {
      if (a.at != b.at) return a.at < b.at;
      return a.bytes < b.bytes;
    });
  }
  return changes;
}

}  // namespace tandem
