#include "traces/trace.h"

namespace tandem {

void write_trace(const std::vector<TraceSource>& sources, const std::string& path) {
  OutputFile out(path);
  if (path.ends_with(".json")) {
    write_chrome(sources, out);
  } else {
    write_perfetto(sources, out);
  }
  out.commit();
}

}  // namespace tandem
