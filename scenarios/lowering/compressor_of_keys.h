#pragma once

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

/// Makes a key of each `ratio` positions (runtime/ops/compress_keys.h), norms it and rotates its last elements by the window's
/// first position (DeepSeek-V4, section 2.3).
struct KeyCompressor {
  ParameterId project = 0;   ///< to values, then scores
  ParameterId position = 0;  ///< a bias of the scores for each place in a window
  ParameterId norm = 0;
  std::int64_t ratio = 1, width = 0;
  bool overlap = false;

  std::int64_t rows_width() const { return (overlap ? 2 : 1) * width; }
};

/// The biases and the norm see the heads of this tensor-parallel rank alone; the projection is replicated, or `whole` as they
/// are.
KeyCompressor declare_key_compressor(const Context& context, ChunkParameters& parameters, const std::string& name,
                                     const KeyCompressor& sizes, bool whole);

/// Of layers with compressed keys.
YarnAttributes stretched_angles(const CompressedAttentionSpec& spec);

/// What the backward reads: values, scores, and keys before their norm.
struct CompressedKeys {
  BufferId values = no_id, scores = no_id, pooled = no_id;
};

/// From `projected` [s,b,2w] of all positions into `keys` [s/ratio,b,1,d].
CompressedKeys compress_keys(Context& context, const KeyCompressor& weights, BufferId projected, BufferId keys);
/// Returns the gradient of `projected`.
BufferId compress_keys_backward(Context& context, const KeyCompressor& weights, const CompressedKeys& compressed, BufferId dkeys);

}  // namespace tandem::scenarios
