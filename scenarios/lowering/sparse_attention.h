#pragma once

#include "scenarios/lowering/mla_attention.h"

namespace tandem::scenarios {

/// DeepSeek sparse attention (DeepSeek-V3.2, arXiv 2512.02556, section 2.1) as Megatron-Core lowers it (`dsa.py`, DSAttention):
/// latent attention of each query to the keys that the indexer chooses for it. All heads share these, so that they are read once:
/// the part of the projection up that makes keys is absorbed into the queries, the part that makes values follows attention.
///
///   q    [s, b, heads, kv_rank + rope]  the query without position, times the head's part of the projection up, and its rotary
///   key  [s, b, 1, kv_rank + rope]      the latent and the rotated part; its first kv_rank elements are the value, too
///
/// Context-parallel ranks gather the keys of attention and of the indexer, in one message, and keep them for the backward. There
/// the indexer learns: attention's distribution, added up over the heads of all tensor-parallel ranks, is its target.
///
/// `recompute.mla_up` makes the queries again, `recompute.attention` what comes after them.
MlaAttended attend_chosen(Context& context, const MlaParameters& weights, BufferId x, const Latents& latents);

/// How often the gradient of the projection up is added to in a backward pass: as part of the queries, and of the outputs.
inline constexpr int uses_of_absorbed_weight = 2;

}  // namespace tandem::scenarios
