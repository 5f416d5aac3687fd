#include "runtime/analysis/memory.h"

#include <algorithm>
#include <limits>

namespace tandem {
namespace {

struct Change {
  Seconds at;
  Bytes activations;
  Bytes buffers;
};

struct Lifetime {
  Seconds begin = std::numeric_limits<Seconds>::max();
  Seconds end = -1;
};

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

void find_peak(std::vector<Change>& changes, MemoryUse& use) {
  // What is freed at an instant makes room for what is allocated then.
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    if (a.at != b.at) return a.at < b.at;
    return a.activations + a.buffers < b.activations + b.buffers;
  });
  const Bytes inputs = use.buffers;
  Bytes activations = 0;
  Bytes buffers = 0;
  for (const Change& change : changes) {
    activations += change.activations;
    buffers += change.buffers;
    if (activations + buffers > use.activations + use.buffers - inputs) {
      use.activations = activations;
      use.buffers = inputs + buffers;
      use.peak_at = change.at;
    }
  }
}

}  // namespace

std::vector<MemoryUse> memory_use(const Dag& dag, const Timeline& timeline) {
  std::vector<MemoryUse> uses(dag.ranks.size());
  std::vector<std::vector<Change>> changes(dag.ranks.size());
  const std::vector<Lifetime> lives = lifetimes(dag, timeline);
  for (BufferId id = 0; id < dag.buffers.size(); ++id) {
    const Buffer& buffer = dag.buffers[id];
    if (buffer.base != id) continue;
    MemoryUse& use = uses[buffer.rank];
    const Bytes bytes = buffer.bytes();
    switch (buffer.kind) {
      case BufferKind::parameter:
        use.parameters += bytes;
        break;
      case BufferKind::gradient:
        use.gradients += bytes;
        break;
      case BufferKind::optimizer:
        use.optimizer += bytes;
        break;
      case BufferKind::input:
        use.buffers += bytes;
        break;
      case BufferKind::activation:
      case BufferKind::communication:
        if (lives[id].end < 0) break;
        const bool activation = buffer.kind == BufferKind::activation;
        const Bytes a = activation ? bytes : 0;
        const Bytes b = activation ? 0 : bytes;
        changes[buffer.rank].push_back({lives[id].begin, a, b});
        changes[buffer.rank].push_back({lives[id].end, -a, -b});
        break;
    }
  }
  for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) find_peak(changes[rank], uses[rank]);
  return uses;
}

std::vector<MemoryUse> memory_by_stage(const Dag& dag, const std::vector<MemoryUse>& by_rank) {
  std::vector<MemoryUse> stages(static_cast<std::size_t>(dag.info.stages));
  for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) {
    MemoryUse& stage = stages[static_cast<std::size_t>(dag.ranks[rank].pp)];
    if (by_rank[rank].peak() > stage.peak()) stage = by_rank[rank];
  }
  return stages;
}

}  // namespace tandem
