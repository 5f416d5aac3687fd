#pragma once

#include <cstdint>
#include <string>

#include "runtime/dag/dag.h"

namespace tandem {

// What the host backend takes on: a thread for each stream of each rank, and every buffer in fp32. Each throws InputError, placed
// at `file`.

void refuse_too_many_ranks(std::int64_t ranks, const std::string& file);
void refuse_too_many_bytes(const Dag& dag, const std::string& file);

/// A DAG that was lowered folded has not all members of its collectives.
void refuse_missing_ranks(const Dag& dag, const std::string& file);

}  // namespace tandem
