#pragma once

#include <optional>

#include "scenarios/lowering/compressor_of_keys.h"
#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

/// Chooses compressed keys; whole on every tensor-parallel rank, as lowering/indexer.h has it.
struct CompressedIndexer {
  ParameterId query = 0, weight = 0;
  KeyCompressor keys;
};

struct CompressedAttentionParameters {
  ParameterId query_down = 0, query_norm = 0, query_up = 0;
  ParameterId key = 0, key_norm = 0;
  std::optional<KeyCompressor> compressor = {};
  std::optional<CompressedIndexer> indexer = {};
  ParameterId output_down = 0;  ///< of each group of heads
  ParameterId output = 0;
  std::optional<ParameterId> sink = {};
};

/// Attention of DeepSeek-V4 (section 2.3; DeepseekV4Attention of transformers), in layers of sliding, compressed sparse or
/// heavily compressed attention. All heads share one key, which is its value, too. A query sees those of the last `window`
/// positions, and behind them compressed keys: all that end at its position or before, or those that an indexer chooses. Both lie
/// in one tensor, and attention is that to chosen keys (runtime/ops/sparse_attention.h), as in DeepSeek's own kernel.
///
///   queries   x -> q_rank -> norm -> heads, each normed without weights and rotated; heads sharded over tp
///   keys      x -> one head -> norm, rotated; replicated over tp, like what compressed keys are made of; both are gathered whole
///   outputs   turned back by the query's position, projected down by groups of heads, and up by a row-parallel layer
///
/// Context-parallel ranks gather the keys of positions, rotated, and what compressed keys are made of, which every rank makes of
/// the whole sequence (`cp_method: all-gather`). `recompute.attention` makes what lies between the projections again.
CompressedAttentionParameters declare_compressed_attention(const Context& context, ChunkParameters& parameters,
                                                           const std::string& layer, Mixer mixer);
BufferId compressed_attention(Context& context, Tape& tape, const CompressedAttentionParameters& weights, BufferId x);

}  // namespace tandem::scenarios
