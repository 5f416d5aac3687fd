#include "tests/traces/read_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/runtime/temporary_folder.h"
#include "traces/formats.h"

namespace tandem::traces {

std::string written_trace(const std::vector<TraceSource>& sources, const std::string& ending) {
  const TemporaryFolder folder;
  const std::string path = folder / ("trace" + ending);
  EXPECT_TRUE(open_trace(path)->write(sources).empty());
  return read_all(path);
}

perfetto::Trace parse_perfetto(const std::string& bytes) {
  perfetto::Trace trace;
  EXPECT_TRUE(trace.ParseFromString(bytes));
  return trace;
}

std::vector<SliceRead> slices_of(const perfetto::Trace& trace) {
  std::map<std::uint64_t, std::string> names;
  std::map<std::uint64_t, perfetto::ThreadDescriptor> threads;
  std::map<std::uint64_t, SliceRead> open;
  std::map<std::uint64_t, std::int64_t> clock;
  std::vector<SliceRead> slices;
  for (const perfetto::TracePacket& packet : trace.packet()) {
    for (const auto& name : packet.interned_data().event_names()) names[name.iid()] = name.name();
    if (packet.track_descriptor().has_thread()) threads[packet.track_descriptor().uuid()] = packet.track_descriptor().thread();
    if (!packet.has_track_event()) continue;
    const perfetto::TrackEvent& event = packet.track_event();
    if (event.type() == perfetto::TrackEvent::TYPE_COUNTER) continue;
    const std::uint64_t track = event.track_uuid();
    const auto time = static_cast<std::int64_t>(packet.timestamp());
    EXPECT_GE(time, clock[track]) << "time runs backwards on track " << track;
    clock[track] = time;
    if (event.type() == perfetto::TrackEvent::TYPE_SLICE_BEGIN) {
      EXPECT_FALSE(open.contains(track)) << "a slice begins inside another on track " << track;
      open[track] = {threads.at(track).pid(), threads.at(track).tid(), names.at(event.name_iid()), time, 0};
    } else {
      EXPECT_EQ(event.type(), perfetto::TrackEvent::TYPE_SLICE_END);
      SliceRead slice = open.at(track);
      open.erase(track);
      slice.end_ns = time;
      slices.push_back(slice);
    }
  }
  EXPECT_TRUE(open.empty());
  std::sort(slices.begin(), slices.end());
  return slices;
}

std::vector<SliceRead> slices_of(const nlohmann::json& chrome) {
  // Times lie far below 2^53 ns, so a double of microseconds still tells every nanosecond.
  const auto in_ns = [](const nlohmann::json& microseconds) { return std::llround(microseconds.get<double>() * 1000); };
  std::vector<SliceRead> slices;
  for (const nlohmann::json& event : chrome.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const std::int64_t start = in_ns(event.at("ts"));
    slices.push_back({event.at("pid"), event.at("tid"), event.at("name"), start, start + in_ns(event.at("dur"))});
  }
  std::sort(slices.begin(), slices.end());
  return slices;
}

}  // namespace tandem::traces
