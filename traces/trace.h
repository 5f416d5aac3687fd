#pragma once

#include <string>
#include <vector>

#include "runtime/dag.h"
#include "runtime/timeline.h"
#include "traces/output_file.h"

namespace tandem {

/// One timeline to write; a cross-check writes two into one file. DAG and timeline must outlive the call.
struct TraceSource {
  std::string title;  ///< "simulated", "measured": told apart by it where a file holds two
  const Dag* dag = nullptr;
  const Timeline* timeline = nullptr;
  std::vector<RankIndex> ranks = {};  ///< those to write; empty: all
};

/// Perfetto TrackEvent protobuf: a process per rank, a thread per stream, flows from send to receive.
void write_perfetto(const std::vector<TraceSource>& sources, OutputFile& out);

/// The same spans as Chrome JSON ("X" events, microseconds), after Kineto's conventions.
void write_chrome(const std::vector<TraceSource>& sources, OutputFile& out);

/// By the ending of the file's name: .json is Chrome's, anything else Perfetto's.
void write_trace(const std::vector<TraceSource>& sources, OutputFile& out);

}  // namespace tandem
