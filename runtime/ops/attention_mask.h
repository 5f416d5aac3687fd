#pragma once

#include <cstdint>

#include "runtime/base/host_device.h"
#include "runtime/ops/attributes.h"

namespace tandem {

/// Which keys a query sees, by the positions of both: all, or where causal those from `first_seen` to its own.
struct AttentionMask {
  bool causal = true;
  std::int32_t window = 0;  ///< positions at most, the query's own among them; 0: no limit
  std::int32_t chunk = 0;   ///< those of the same run of so many positions alone; 0: no runs

  TANDEM_HOST_DEVICE std::int32_t first_seen(std::int32_t query) const {
    std::int32_t first = window > 0 && query >= window ? query - window + 1 : 0;
    if (chunk > 0 && query / chunk * chunk > first) first = query / chunk * chunk;
    return first;
  }
  TANDEM_HOST_DEVICE bool sees(std::int32_t query, std::int32_t key) const {
    return !causal || (key <= query && key >= first_seen(query));
  }
};

inline AttentionMask mask_of(const AttentionAttributes& attributes) {
  return {attributes.causal, attributes.window, attributes.chunk};
}

/// Returns the number of pairs of a query and a key that it sees, of the positions that `attributes` names; where it is not
/// causal of so many queries and keys. Closed form over the runs of positions. It is asked of one sequence that is one document.
std::int64_t seen_pairs(const AttentionAttributes& attributes, std::int64_t queries, std::int64_t keys);

/// Returns the same of so many positions from `query` and from `key` on.
std::int64_t seen_pairs_of_runs(const AttentionAttributes& attributes, std::int64_t query, std::int64_t queries, std::int64_t key,
                                std::int64_t keys);

/// Returns the same of all sequences of a micro-batch, each query with the keys of its document alone.
std::int64_t seen_pairs_of_batch(const AttentionAttributes& attributes, std::int64_t queries, std::int64_t keys,
                                 std::int64_t sequences);

}  // namespace tandem
