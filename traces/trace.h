#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"
#include "traces/output_file.h"

namespace tandem::traces {

/// A lowered rank that a trace shows as a process.
struct TracedRank {
  RankIndex rank = 0;
  std::vector<std::uint32_t> asked = {};  ///< the world ranks it was asked for as, ascending; the process tells of them
};

/// A step function over the step: from `times[i]` on the value is `values[i]`, up to the next.
struct TraceCounter {
  std::string name;                    ///< "memory"
  std::string unit;                    ///< "bytes", "%"
  std::optional<RankIndex> rank = {};  ///< of the DAG; none: of the whole cluster
  std::vector<Seconds> times = {};     ///< ascending; of equal ones the last counts
  std::vector<double> values = {};
};

/// When the CPU was busy with issuing a task.
struct Issued {
  Seconds start = 0, end = 0;
};

/// One timeline to write; a cross-check writes two into one file. DAG and timeline must outlive the call.
struct TraceSource {
  std::string title;  ///< "simulated", "measured": told apart by it where a file holds two
  const Dag* dag = nullptr;
  const Timeline* timeline = nullptr;
  std::vector<TracedRank> ranks = {};                  ///< those to write; empty: see representative_ranks.h
  std::vector<TraceCounter> counters = {};             ///< those of ranks that are not written are left out
  std::function<std::string_view(TaskId)> bound = {};  ///< what a task's speed is limited by, where that is known
  std::function<Issued(TaskId)> issued = {};           ///< where it is known, and takes time
};

/// Perfetto TrackEvent protobuf: a process per rank, a thread per stream, flows from send to receive and among the
/// members of a collective, counters.
void write_perfetto(const std::vector<TraceSource>& sources, OutputFile& out);

/// The same spans as Chrome JSON ("X" events, microseconds), after Kineto's conventions.
void write_chrome(const std::vector<TraceSource>& sources, OutputFile& out);

}  // namespace tandem::traces
