#pragma once

#include "runtime/backend.h"
#include "runtime/timeline.h"

namespace tandem {

/// Runs every task of `dag` on `backend` in dependency and stream order, and returns when each ran.
/// Throws std::logic_error naming the stuck tasks if the DAG cannot finish (a lowering bug: collectives in conflicting orders).
Timeline execute(const Dag& dag, Backend& backend);

}  // namespace tandem
