#pragma once

#include <map>

#include "runtime/dag/dag.h"

namespace tandem {

/// Returns by buffer in the memory of a host the buffer that it is copied to. Where Adam runs on the CPU, those are the weights
/// that it updates.
std::map<BufferId, BufferId> copied_from_host(const Dag& dag);

}  // namespace tandem
