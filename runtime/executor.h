#pragma once

#include <atomic>
#include <cstddef>
#include <span>

#include "runtime/backend.h"
#include "runtime/dag/timeline.h"

namespace tandem {

/// Counts the tasks of a DAG that have ended. Another thread may read it meanwhile, and another process where it lies in shared
/// memory.
using EndedTasks = std::atomic<std::size_t>;

/// Runs every task of `dag` on `backend` in dependency and stream order, and returns when each ran.
/// Throws std::logic_error naming the stuck tasks if the DAG cannot finish (a lowering bug: collectives in conflicting orders).
/// `ended`, where it is given, is set to 0 and counts.
Timeline execute(const Dag& dag, Backend& backend, EndedTasks* ended = nullptr);

/// The same for dates that lie elsewhere: `start` and `end` have a place for each task.
void execute_into(std::span<Seconds> start, std::span<Seconds> end, const Dag& dag, Backend& backend,
                  EndedTasks* ended = nullptr);

/// The same for those who ask when the last task ended, and nothing else.
Seconds last_end_on(const Dag& dag, Backend& backend);

}  // namespace tandem
