#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/trace.h"

namespace tandem::traces {

/// Where a trace goes, opened before the work begins, so that a wrong path does not cost a run.
class OpenTrace {
 public:
  virtual ~OpenTrace() = default;
  /// Each file appears whole or not at all. Returns other traces that lie at the same place, which a reader would take for parts
  /// of this one. Throws std::runtime_error with the path and the reason.
  virtual std::vector<std::string> write(const std::vector<TraceSource>& sources) = 0;
};

/// A format of traces: a row of the table in formats.cpp. The path alone chooses the format.
struct TraceFormat {
  std::string_view name;   ///< "Chrome"
  std::string_view paths;  ///< those that it takes, as help lists them: "F.json"
  bool (*takes)(std::string_view path);
  /// Throws std::runtime_error with the path and the reason.
  std::unique_ptr<OpenTrace> (*open)(const std::string& path);
};

/// All formats. The first that takes a path writes there, and the last takes every path.
std::span<const TraceFormat> trace_formats();

/// Opens a trace in the format that its path asks for. Throws like `TraceFormat::open`.
std::unique_ptr<OpenTrace> open_trace(const std::string& path);

/// Which paths are for which format: "F.json for Chrome, ..., any other file for Perfetto".
std::string trace_formats_text();

}  // namespace tandem::traces
