#include "runtime/host/updates.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "runtime/analysis/optimizer_updates.h"
#include "runtime/analysis/weights_from_host.h"

namespace tandem {

std::size_t Update::index(std::size_t i) const {
  const std::int64_t in_shard = first + static_cast<std::int64_t>(i);
  const std::int64_t row = shard.row + in_shard / shard.columns;
  return static_cast<std::size_t>(row * shard.tensor_columns + shard.column + in_shard % shard.columns);
}

void for_each_update(const HostMemory& memory, const std::function<void(const Update&)>& visit) {
  const Dag& dag = memory.dag();
  std::unordered_map<BufferId, std::vector<const ParameterShard*>> shards_of_base;
  for (const ParameterShard& shard : dag.shards) shards_of_base[dag.buffers[shard.buffer].base].push_back(&shard);

  const std::map<BufferId, BufferId> copied = copied_from_host(dag);
  std::set<BufferId> visited;
  for (const OptimizerUpdate& update : optimizer_updates(dag)) {
    if (!visited.insert(update.weight).second) continue;
    const auto replica = static_cast<std::size_t>(dag.ranks[update.rank].dp);
    const auto back = copied.find(update.weight);
    const BufferId parameter = back == copied.end() ? update.weight : back->second;
    const Buffer& updated = dag.buffers[parameter];
    for (const ParameterShard* shard : shards_of_base[updated.base]) {
      const std::int64_t shard_begin = dag.buffers[shard->buffer].offset;
      const std::int64_t begin = std::max(updated.offset, shard_begin);
      const std::int64_t end = std::min(updated.offset + updated.shape.elements(), shard_begin + shard->rows * shard->columns);
      if (begin >= end) continue;
      const auto part = [&](BufferId buffer) {
        if (buffer == no_id) return std::span<const float>();
        return std::span<const float>(memory.tensor(buffer).f32() + begin - updated.offset,
                                      static_cast<std::size_t>(end - begin));
      };
      visit(Update{.shard = *shard,
                   .replica = replica,
                   .first = begin - shard_begin,
                   .gradient = part(update.gradient),
                   .weight = part(parameter),
                   .momentum = part(update.momentum),
                   .variance = part(update.variance),
                   .follows_counts = update.follows_counts});
    }
  }
}

}  // namespace tandem
