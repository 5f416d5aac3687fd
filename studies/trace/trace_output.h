#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"
#include "traces/formats.h"

namespace tandem::studies {

/// A step that a trace shows. All that this points to must outlive the writing.
struct TracedStep {
  std::string title;  ///< "simulated", "measured"
  const Dag* dag = nullptr;
  const Timeline* timeline = nullptr;
  bool simulated = false;  ///< so that the model knows what limits a task and how busy the links are
  /// The lowered rank that stands for each rank of the world; empty where every rank was lowered.
  std::span<const RankIndex> class_of = {};
};

/// The trace that --trace and --trace-ranks ask for, in the format that the path asks for (traces/formats.h). To be opened before
/// the work begins.
class TraceOutput {
 public:
  /// Opens the trace. `ranks` is a list that `parse_ranks` takes, or empty for representative ranks. Throws InputError where the
  /// list is wrong, and std::runtime_error where the path is.
  TraceOutput(const std::string& path, std::string_view ranks, std::int64_t world);

  /// Writes the trace. Returns other traces that lie at the same place, which a reader would take for parts of this one.
  std::vector<std::string> write(const std::vector<TracedStep>& steps);

 private:
  std::vector<std::uint32_t> ranks_;
  std::unique_ptr<OpenTrace> trace_;
};

}  // namespace tandem::studies
