#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "runtime/analysis/memory_changes.h"
#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"

namespace tandem {

/// Calls `visit(change, time)` for each change of the whole step in order: with how often the stretch has happened again by then,
/// which `repeat.again_at` makes its date. Returns false as soon as `visit` does.
template <typename Visit>
bool all_in_whole_step(const std::vector<MemoryChange>& changes, const Repeat& repeat, const Visit& visit) {
  const auto stretch = std::ranges::lower_bound(changes, repeat.from, {}, &MemoryChange::at);
  const auto rest = std::ranges::lower_bound(changes, repeat.to, {}, &MemoryChange::at);
  const auto all = [&](auto begin, auto end, std::int64_t time) {
    return std::all_of(begin, end, [&](const MemoryChange& change) { return visit(change, time); });
  };
  if (!all(changes.begin(), stretch, 0)) return false;
  for (std::int64_t time = 0; time <= repeat.times; ++time)
    if (!all(stretch, rest, time)) return false;
  return all(rest, changes.end(), repeat.times);
}

/// Returns the memory changes of a rank in the whole step, of those in a timeline of which a stretch repeats itself: what is in
/// the stretch once more for each time, and what comes later at its later date. Buffers have numbers of their own, equal where
/// buffers are.
///
/// A stretch frees what was allocated in it, or a whole number of periods before by an earlier micro-batch's task of the same
/// place in the model. Nothing where such a buffer is not found, or not as large.
std::optional<std::vector<MemoryChange>> changes_of_whole_step(const Dag& dag, const Timeline& timeline,
                                                               std::vector<MemoryChange> changes, RankIndex rank);

}  // namespace tandem
