#include "traces/trace.h"

namespace tandem::traces {

void write_trace(const std::vector<TraceSource>& sources, OutputFile& out) {
  (out.path().ends_with(".json") ? write_chrome : write_perfetto)(sources, out);
}

}  // namespace tandem::traces
