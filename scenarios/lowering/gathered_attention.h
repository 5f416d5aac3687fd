#pragma once

#include "scenarios/lowering/passed_keys.h"

namespace tandem::scenarios {

/// Gathers what all context-parallel ranks pass on, in the order of the sequence; the way back adds gradients up, each at its
/// home.
PassedKeys gather_keys(Context& context, const PassedKeys& mine);
PassedKeys scatter_key_gradients(Context& context, const PassedKeys& dall, const PassedKeys& mine);

/// Llama 3's context parallelism (section 3.3.2 of its paper): every rank gathers all keys and values, which grouped queries keep
/// small, or what they are made of, and attends to them with one kernel. They are gathered again for the backward, not kept;
/// their gradients are reduce-scattered.
AttendedAcross gathered_attention(Context& context, const Attending& mine, const KeyMaking& making);

}  // namespace tandem::scenarios
