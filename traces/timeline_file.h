#pragma once

#include <string>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"

namespace tandem::traces {

/// A timeline by itself, exactly, for whoever has its DAG: the seconds at which each task began and ended.
struct MeasuredTimeline {
  Timeline timeline;
  std::string executed_on;  ///< in words: backend, device, versions
};

std::string to_bytes(const Dag& dag, const MeasuredTimeline& measured);

/// Returns whether the file at `path` begins as a timeline does; false where it cannot be read.
bool is_timeline(const std::string& path);

/// Throws InputError for a file that is no timeline, or one of another DAG: of other tasks, operands or collectives. What the
/// tasks are expected to cost may differ.
MeasuredTimeline read_timeline(const std::string& path, const Dag& dag);

}  // namespace tandem::traces
