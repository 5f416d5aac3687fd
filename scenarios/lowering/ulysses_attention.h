#pragma once

#include "scenarios/lowering/attend.h"

namespace tandem::scenarios {

/// DeepSpeed-Ulysses (Jacobs et al. 2023): an all-to-all turns parts of the sequence with all heads into the whole sequence with
/// some heads, for queries, keys and values, and another turns the outputs back. Ranks hold runs of the sequence in their order.
Attended ulysses_attention(Context& context, const Heads& heads);

/// Returns the sink of the heads that this rank attends with where heads are dealt out.
std::optional<AttentionSink> own_part(const Context& context, std::optional<AttentionSink> sink);

}  // namespace tandem::scenarios
