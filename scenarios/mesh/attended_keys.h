#pragma once

#include <cstdint>
#include <vector>

#include "runtime/ops/attributes.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

// Which keys attention's kernels see, for the lowering that writes these kernels and for the fold that asks which ranks have as
// many of them. What else a kernel needs (scales, documents) is left at its default.

/// Which queries attend to which keys.
struct Block {
  Positions queries, keys;
};

/// Returns the block that the rank-th of `ranks` ranks in a ring has after so many hops: its own queries, and the keys that the
/// rank so many places before it sent out. The ranks share `length` positions (positions.h).
Block block_after(std::int64_t hop, std::int64_t length, bool zigzag, std::int64_t rank, std::int64_t ranks);

/// Returns the mask in layers of this kind. What reaches back as far as a sequence of the training does is no limit.
AttentionAttributes seen_keys(const Scenario& scenario, Mixer mixer, const Block& block);

/// Returns what queries see of `length` positions before an indexer chooses among them, in latent attention.
SparseAttentionAttributes keys_to_choose(const Positions& queries, std::int64_t length);

/// Returns what queries see of keys that stand for `ratio` positions each.
SparseAttentionAttributes compressed_keys_to_choose(const Positions& queries, std::int64_t length, std::int64_t ratio);

/// Returns what queries see of the last positions, and behind these of keys that stand for `ratio` positions each; 0: there are
/// none.
SparseAttentionAttributes window_and_compressed_keys(const ModelSpec& model, const Positions& queries, std::int64_t length,
                                                     std::int64_t ratio);

/// By context-parallel rank: equal where every kernel of attention has as many pairs of a query and a key, in each hop of a ring.
/// Where documents are packed, ranks are told apart unless zigzag chunks of each document make their work equal.
std::vector<std::uint32_t> work_of_context_ranks(const Scenario& scenario);

}  // namespace tandem::scenarios
