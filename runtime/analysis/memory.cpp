#include "runtime/analysis/memory.h"

#include "runtime/analysis/graph_memory.h"
#include "runtime/analysis/memory_origins.h"
#include "runtime/base/parallel.h"

namespace tandem {
namespace {

void find_peak(const Timeline& timeline, const std::vector<MemoryChange>& changes, MemoryUse& use) {
  const GraphMemory graphs = graph_memory(changes);
  Bytes activations = use.activations = use.graph_activations = graphs.activations();
  use.graph_buffers = graphs.pool_buffers;
  Bytes buffers = use.buffers = use.inputs + use.graph_buffers;
  use.peak_at = timeline.in_step(graphs.fullest_at);
  use.changes = changes.size();
  for (const MemoryChange& change : changes) {
    if (change.home != MemoryHome::allocator) continue;
    (change.is_activation ? activations : buffers) += change.bytes;
    if (activations + buffers > use.activations + use.buffers) {
      use.activations = activations;
      use.buffers = buffers;
      use.peak_at = timeline.in_step(change.at);
    }
  }
}

}  // namespace

MemoryUse MemoryUses::that_stays(RankIndex rank) const {
  const Dag& dag = changes_.dag();
  const std::vector<std::int64_t>& inputs = changes_.inputs();
  const FrameworkMemory& framework = changes_.origins().framework[rank];
  MemoryUse use{.rank = rank, .inputs = framework.bytes(), .framework = framework.bytes()};
  changes_.origins().buffers.for_each(rank, [&](BufferId id) {
    const Buffer& buffer = dag.buffers[id];
    if (buffer.base != id) return;
    switch (buffer.kind) {
      case BufferKind::parameter:
        use.parameters += buffer.bytes();
        break;
      case BufferKind::gradient:
        use.gradients += buffer.bytes();
        break;
      case BufferKind::optimizer:
        use.optimizer += buffer.bytes();
        break;
      case BufferKind::input:
        use.inputs += (inputs.empty() ? 1 : inputs[id]) * buffer.bytes();
        break;
      case BufferKind::host:
        use.host += buffer.bytes();
        break;
      case BufferKind::activation:
      case BufferKind::communication:
        break;  // these come and go
    }
  });
  return use;
}

MemoryUse MemoryUses::of(RankIndex rank, const std::vector<MemoryChange>& changes) const {
  MemoryUse use = that_stays(rank);
  find_peak(changes_.timeline(), changes, use);
  return use;
}

std::vector<MemoryUse> memory_use(const Dag& dag, const Timeline& timeline) {
  const MemoryChanges changes(dag, timeline);
  const MemoryUses use(changes);
  std::vector<MemoryUse> of_rank(dag.ranks.size());
  in_parallel(of_rank.size(), [&](std::size_t rank) { of_rank[rank] = use.of(static_cast<RankIndex>(rank)); });
  return of_rank;
}

std::vector<RankIndex> fullest_ranks(const Dag& dag, const std::vector<MemoryUse>& by_rank) {
  std::vector<RankIndex> fullest(static_cast<std::size_t>(dag.info.stages), no_id);
  for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) {
    for (const auto& [stage, ranks] : dag.ranks[rank].by_stage(dag.info.stages)) {
      if (ranks == 0) continue;
      RankIndex& of_stage = fullest[static_cast<std::size_t>(stage)];
      if (of_stage == no_id || by_rank[rank].peak() > by_rank[of_stage].peak()) of_stage = rank;
    }
  }
  return fullest;
}

std::vector<MemoryUse> memory_by_stage(const Dag& dag, const std::vector<MemoryUse>& by_rank) {
  std::vector<MemoryUse> stages;
  for (const RankIndex rank : fullest_ranks(dag, by_rank)) stages.push_back(rank == no_id ? MemoryUse{} : by_rank[rank]);
  return stages;
}

}  // namespace tandem
