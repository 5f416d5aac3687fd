#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "tests/traces/read_trace.h"
#include "tests/traces/sample.h"

namespace tandem::traces::chrome_test {
namespace {

using nlohmann::json;

TEST(Chrome, CarriesTheSameSlicesAsPerfetto) {
  const Sample simulated = pipeline_sample(3, 2, 3);
  Sample measured = pipeline_sample(3, 2, 3);
  for (Seconds& time : measured.timeline.end) time += 0.3e-9;
  for (std::string& name : measured.dag.names) name += " on the host";
  const std::vector<TraceSource> sources{{"simulated", &simulated.dag, &simulated.timeline},
                                         {"measured", &measured.dag, &measured.timeline}};
  const std::vector<SliceRead> chrome = slices_of(json::parse(written_trace(sources, ".json")));
  EXPECT_EQ(chrome.size(), 2 * simulated.dag.tasks.size());
  EXPECT_EQ(chrome, slices_of(parse_perfetto(written_trace(sources, ".pftrace"))));
}

TEST(Chrome, TimesArePrintedToTheNanosecond) {
  const Sample sample = kernels_at({{0, 7e-9}, {3600.000000123, 3600.000001150}});
  const std::string text = written_trace({{"simulated", &sample.dag, &sample.timeline}}, ".json");
  EXPECT_NE(text.find(R"("ts":0.000,"dur":0.007)"), std::string::npos);
  EXPECT_NE(text.find(R"("ts":3600000000.123,"dur":1.027)"), std::string::npos);
}

// Viewers read microseconds as doubles: 18.667 + 1.666 gives 20.333000000000002, which lies behind a slice that starts at 20.333.
// Some count from the first slice on, which rounds in other places.
TEST(Chrome, SlicesDoNotOverlapInDoublesEither) {
  std::vector<std::pair<Seconds, Seconds>> times{{0.001e-6, 18.667e-6}, {18.667e-6, 20.333e-6}};
  for (int i = 0; i < 10'000; ++i) times.emplace_back(times.back().second, times.back().second + (1 + i % 997) * 1.001e-6);
  const Sample sample = kernels_at(times);
  const json trace = json::parse(written_trace({{"simulated", &sample.dag, &sample.timeline}}, ".json"));
  for (const double origin : {0.0, 0.001}) {
    double previous_end = 0;
    for (const json& event : trace.at("traceEvents")) {
      if (event.at("ph") != "X") continue;
      const double start = event.at("ts").get<double>() - origin;
      ASSERT_GE(start, previous_end);
      previous_end = start + event.at("dur").get<double>();
    }
  }
}

TEST(Chrome, FollowsKineto) {
  const Sample sample = pipeline_sample(2, 2, 1);
  const std::string text = written_trace({{"simulated", &sample.dag, &sample.timeline}}, ".json");
  // Holistic Trace Analysis finds the rank by this text, and reads a trace's rank and streams from there.
  EXPECT_NE(text.find(R"("rank": 0)"), std::string::npos);
  const json trace = json::parse(text);
  EXPECT_EQ(trace.at("displayTimeUnit"), "ns");
  EXPECT_EQ(trace.at("distributedInfo").at("rank"), 0);
  EXPECT_EQ(trace.at("distributedInfo").at("world_size"), 4);
  std::map<std::string, int> metadata;
  for (const json& event : trace.at("traceEvents")) {
    EXPECT_GT(event.at("pid"), 0);
    EXPECT_GT(event.at("tid"), 0);
    if (event.at("ph") == "M") ++metadata[event.at("name")];
    if (event.at("ph") != "X") continue;
    EXPECT_EQ(event.at("cat"), "kernel");
    EXPECT_EQ(event.at("args").at("stream"), event.at("tid"));
  }
  // Four ranks of four streams each: compute, dp, one to send and one to receive.
  EXPECT_EQ(metadata, (std::map<std::string, int>{
                          {"process_name", 4}, {"process_sort_index", 4}, {"thread_name", 16}, {"thread_sort_index", 16}}));
}

TEST(Chrome, FlowsArePairedInsideSlices) {
  const Sample sample = pipeline_sample(3, 3, 2);
  const json trace = json::parse(written_trace({{"simulated", &sample.dag, &sample.timeline}}, ".json"));
  const std::vector<SliceRead> slices = slices_of(trace);
  std::map<std::uint64_t, std::string> phases;  // of each flow, in the order of the file
  std::map<std::uint64_t, double> clock;
  for (const json& event : trace.at("traceEvents")) {
    const std::string phase = event.at("ph");
    if (phase != "s" && phase != "t" && phase != "f") continue;
    const std::uint64_t id = event.at("id");
    const double time = event.at("ts");
    phases[id] += phase;
    EXPECT_GE(time, clock[id]);
    clock[id] = time;
    const std::int64_t time_ns = std::llround(time * 1000);
    EXPECT_TRUE(std::any_of(slices.begin(), slices.end(), [&](const SliceRead& slice) {
      return slice.pid == event.at("pid") && slice.tid == event.at("tid") && slice.start_ns <= time_ns && time_ns < slice.end_ns;
    })) << event;
  }
  ASSERT_EQ(phases.size(), sample.dag.groups.size());
  for (const auto& [id, seen] : phases) {
    const std::size_t members = sample.dag.members_of(static_cast<GroupId>(id - 1)).size();
    EXPECT_EQ(seen, "s" + std::string(members - 2, 't') + "f");
  }
}

TEST(Chrome, NamesAreEscaped) {
  Sample sample = pipeline_sample(1, 2, 1);
  const std::string awkward = "a \"quoted\\name\"\nwith\ttabs";
  sample.dag.names[0] = awkward;
  sample.dag.names[1] = "broken \xFF utf-8";
  for (Communicator& communicator : sample.dag.communicators) communicator.name = awkward;
  const json trace = json::parse(written_trace({{"simulated", &sample.dag, &sample.timeline}}, ".json"));
  std::set<std::string> names, communicators;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    names.insert(event.at("name"));
    if (event.at("args").contains("communicator")) communicators.insert(event.at("args").at("communicator"));
  }
  EXPECT_TRUE(names.contains(awkward));
  EXPECT_TRUE(names.contains("broken \xEF\xBF\xBD utf-8"));  // the replacement character U+FFFD
  EXPECT_EQ(communicators, std::set<std::string>{awkward});
}

}  // namespace
}  // namespace tandem::traces::chrome_test
