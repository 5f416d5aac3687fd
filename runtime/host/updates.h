#pragma once

#include <functional>
#include <span>

#include "runtime/host/memory.h"

namespace tandem {

/// Consecutive elements of a shard, from its element `first` on, that the optimizer updates: what it reads and writes of them.
struct Update {
  const ParameterShard& shard;
  std::size_t replica;  ///< data-parallel coordinate of the rank
  std::int64_t first;
  std::span<const float> gradient;
  std::span<const float> weight;
  std::span<const float> momentum, variance;  ///< as in OptimizerUpdate
  bool follows_counts;

  /// Where element i of the update lies in the unsharded tensor, row by row.
  std::size_t index(std::size_t i) const;
};

/// Calls `visit` for all that the optimizer updates on any rank, once however many steps it takes, with the values that memory
/// holds now. Padding belongs to no shard and is left out.
void for_each_update(const HostMemory& memory, const std::function<void(const Update&)>& visit);

}  // namespace tandem
