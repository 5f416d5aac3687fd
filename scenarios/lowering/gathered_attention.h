#pragma once

#include "scenarios/lowering/attend.h"

namespace tandem {

/// Llama 3's context parallelism (section 3.3.2 of its paper): every rank gathers all keys and values, which grouped queries keep
/// small, and attends to them with one kernel. They are gathered again for the backward, not kept; their gradients are
/// reduce-scattered.
Attended gathered_attention(Context& context, const Heads& heads);

}  // namespace tandem
