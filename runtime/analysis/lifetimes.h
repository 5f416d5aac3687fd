#pragma once

#include <vector>

#include "runtime/dag.h"
#include "runtime/timeline.h"

namespace tandem {

/// When a buffer, its views included, is touched: from the start of the first task that does to the end of the last.
struct Lifetime {
  Seconds begin = 0;
  Seconds end = 0;
  TaskId first = no_id;  ///< the task that starts at `begin`; no_id where none touches the buffer
};

/// By buffer; those of views stand under what they are views of.
std::vector<Lifetime> lifetimes_of(const Dag& dag, const Timeline& timeline);

/// An activation or a communication buffer that is allocated, or freed.
struct MemoryChange {
  Seconds at = 0;
  Bytes bytes = 0;  ///< negative where it is freed
  BufferId buffer = 0;
  bool is_activation = false;
};

using MemoryChanges = std::vector<std::vector<MemoryChange>>;

/// By rank of the DAG, in time's order. What is freed at an instant makes room for what is allocated then: it comes first, and
/// the largest allocation last.
MemoryChanges memory_changes(const Dag& dag, const std::vector<Lifetime>& lifetimes);

}  // namespace tandem
