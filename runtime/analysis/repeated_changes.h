#pragma once

#include <optional>
#include <vector>

#include "runtime/analysis/memory_changes.h"
#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"

namespace tandem {

/// Returns the memory changes of a rank in the whole step, of those in a timeline of which a stretch repeats itself: what is in
/// the stretch once more for each time, and what comes later at its later date. Buffers have numbers of their own, equal where
/// buffers are.
///
/// A stretch frees what was allocated in it, or a whole number of periods before by an earlier micro-batch's task of the same
/// place in the model. Nothing where such a buffer is not found, or not as large.
std::optional<std::vector<MemoryChange>> changes_of_whole_step(const Dag& dag, const Timeline& timeline,
                                                               std::vector<MemoryChange> changes, RankIndex rank);

}  // namespace tandem
