#pragma once

#include <compare>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "traces/perfetto.pb.h"
#include "traces/trace.h"

namespace tandem::traces {

/// A slice as a viewer would show it, whatever the format.
struct SliceRead {
  std::int32_t pid = 0, tid = 0;
  std::string name;
  std::int64_t start_ns = 0, end_ns = 0;
  auto operator<=>(const SliceRead&) const = default;
};

/// The bytes of the trace in a file of this ending, in the format that the ending asks for.
std::string written_trace(const std::vector<TraceSource>& sources, const std::string& ending);

perfetto::Trace parse_perfetto(const std::string& bytes);

/// Sorted. Fails the test if a slice ends that did not begin, or begins while another of its track is open.
std::vector<SliceRead> slices_of(const perfetto::Trace& trace);
std::vector<SliceRead> slices_of(const nlohmann::json& chrome);

}  // namespace tandem::traces
