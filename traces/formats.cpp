#include "traces/formats.h"

#include <algorithm>

#include "traces/kineto.h"

namespace tandem::traces {
namespace {

using Writer = void(const std::vector<TraceSource>&, OutputFile&);

/// A trace that is one file.
template <Writer write_file>
class FileTrace final : public OpenTrace {
 public:
  explicit FileTrace(const std::string& path) : file_(path) {}
  std::vector<std::string> write(const std::vector<TraceSource>& sources) override {
    write_file(sources, file_);
    file_.commit();
    return {};
  }

 private:
  OutputFile file_;
};

template <typename Trace>
std::unique_ptr<OpenTrace> open_as(const std::string& path) {
  return std::make_unique<Trace>(path);
}

constexpr TraceFormat formats[] = {
    {"Chrome", "F.json", [](std::string_view path) { return path.ends_with(".json"); }, open_as<FileTrace<write_chrome>>},
    {"Kineto", "a folder DIR/ (a file per rank)", [](std::string_view path) { return path.ends_with('/'); },
     open_as<TraceFolder>},
    {"Perfetto", "any other file", [](std::string_view) { return true; }, open_as<FileTrace<write_perfetto>>},
};

}  // namespace

std::span<const TraceFormat> trace_formats() { return formats; }

std::unique_ptr<OpenTrace> open_trace(const std::string& path) {
  return std::ranges::find_if(formats, [&](const TraceFormat& format) { return format.takes(path); })->open(path);
}

std::string trace_formats_text() {
  std::string text;
  for (const TraceFormat& format : formats) {
    if (!text.empty()) text += ", ";
    text.append(format.paths).append(" for ").append(format.name);
  }
  return text;
}

}  // namespace tandem::traces
