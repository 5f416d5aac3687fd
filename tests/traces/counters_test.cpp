// Counters of ranks and of the cluster, in both formats.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/runtime/temporary_folder.h"
#include "tests/traces/read_trace.h"
#include "tests/traces/sample.h"
#include "traces/kineto.h"
#include "traces/spans.h"

namespace tandem::traces::counters_test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::Pair;
using Points = std::vector<std::pair<std::int64_t, double>>;  // ns, value
/// By the process they stand under, and their name with the unit.
using Counters = std::map<std::pair<std::string, std::string>, Points>;

Points points(const TraceCounter& counter) {
  Points out;
  for (const CounterPoint& point : points_of(counter)) out.emplace_back(point.time_ns, point.value);
  return out;
}

TEST(Counters, TellEachTimeOnceAndNoValueTwiceInARow) {
  EXPECT_THAT(points({"memory", "bytes", 0, {0, 1e-9, 2e-9, 2.2e-9, 3e-9, 4e-9}, {1, 1, 5, 2, 2, 3}}),
              ElementsAre(Pair(0, 1), Pair(2, 2), Pair(4, 3)));
  EXPECT_THAT(points({"memory", "bytes", 0, {0, 1e-9, 1.1e-9}, {1, 5, 1}}), ElementsAre(Pair(0, 1)));
  EXPECT_THAT(points({"memory", "bytes"}), ElementsAre());
}

Counters counters_of(const perfetto::Trace& trace) {
  std::map<std::uint64_t, perfetto::TrackDescriptor> tracks;
  std::map<std::uint64_t, Points> values;
  for (const perfetto::TracePacket& packet : trace.packet()) {
    if (packet.has_track_descriptor()) tracks[packet.track_descriptor().uuid()] = packet.track_descriptor();
    if (packet.track_event().type() != perfetto::TrackEvent::TYPE_COUNTER) continue;
    EXPECT_TRUE(tracks.contains(packet.track_event().track_uuid())) << "a value before its track";
    values[packet.track_event().track_uuid()].emplace_back(packet.timestamp(), packet.track_event().double_counter_value());
  }
  Counters counters;
  for (const auto& [uuid, of_track] : values) {
    const perfetto::TrackDescriptor& track = tracks.at(uuid);
    const bool in_bytes = track.counter().unit() == perfetto::CounterDescriptor::UNIT_SIZE_BYTES;
    const std::string name = track.name() + " in " + (in_bytes ? "bytes" : track.counter().unit_name());
    EXPECT_TRUE(counters.emplace(std::pair(tracks.at(track.parent_uuid()).name(), name), of_track).second);
  }
  return counters;
}

Counters counters_of(const json& chrome) {
  std::map<int, std::string> processes;
  for (const json& event : chrome.at("traceEvents")) {
    if (event.at("name") == "process_name") processes[event.at("pid")] = event.at("args").at("name");
  }
  Counters counters;
  for (const json& event : chrome.at("traceEvents")) {
    if (event.at("ph") != "C") continue;
    const auto value = event.at("args").begin();
    counters[{processes.at(event.at("pid")), event.at("name").get<std::string>() + " in " + value.key()}].emplace_back(
        std::llround(event.at("ts").get<double>() * 1000), value->get<double>());
  }
  return counters;
}

class TwoRanks : public testing::Test {
 protected:
  const Sample sample = pipeline_sample(2, 1, 1);
  const std::vector<TraceCounter> counted{{"memory", "bytes", 0, {0, 5e-6}, {1e10, 8e9 + 1}},
                                          {"memory", "bytes", 1, {1e-6}, {3}},
                                          {"nvlink", "%", {}, {0, 1e-6, 2e-6}, {0, 62.5, 1.0 / 3}},
                                          {"leaf", "%", {}, {0}, {100}}};
  const TraceSource simulated{"simulated", &sample.dag, &sample.timeline, {}, counted};
  const Points nvlink{{0, 0}, {1000, 62.5}, {2000, 1.0 / 3}};
};

TEST_F(TwoRanks, StandUnderTheirRankOrTheCluster) {
  const std::string first = "rank 0 · pp 0 · dp 0", second = "rank 1 · pp 1 · dp 0";
  const Counters expected{{{first, "memory in bytes"}, {{0, 1e10}, {5000, 8e9 + 1}}},
                          {{second, "memory in bytes"}, {{1000, 3}}},
                          {{"cluster", "nvlink in %"}, nvlink},
                          {{"cluster", "leaf in %"}, {{0, 100}}}};
  EXPECT_EQ(counters_of(parse_perfetto(written_trace({simulated}, ".pftrace"))), expected);
  EXPECT_EQ(counters_of(json::parse(written_trace({simulated}, ".json"))), expected);
}

TEST_F(TwoRanks, OfSeveralSourcesStayApart) {
  TraceSource measured = simulated;
  measured.title = "measured";
  measured.counters.resize(2);
  for (const Counters& counters : {counters_of(parse_perfetto(written_trace({simulated, measured}, ".pftrace"))),
                                   counters_of(json::parse(written_trace({simulated, measured}, ".json")))}) {
    EXPECT_EQ(counters.size(), 6U);
    EXPECT_EQ(counters.at({"simulated · cluster", "nvlink in %"}), nvlink);
    EXPECT_EQ(counters.at({"measured · rank 1 · pp 1 · dp 0", "memory in bytes"}), (Points{{1000, 3}}));
  }
}

TEST_F(TwoRanks, OfARankThatIsNotShownAreLeftOut) {
  TraceSource one = simulated;
  one.ranks = {{1}};
  for (const Counters& counters :
       {counters_of(parse_perfetto(written_trace({one}, ".pftrace"))), counters_of(json::parse(written_trace({one}, ".json")))}) {
    EXPECT_EQ(counters.size(), 3U);
    EXPECT_FALSE(counters.contains({"rank 0 · pp 0 · dp 0", "memory in bytes"}));
  }
  const TemporaryFolder folder;
  TraceFolder(folder / "ranks/").write({one});
  EXPECT_EQ(counters_of(json::parse(read_all(folder / "ranks/rank1.json"))).size(), 1U) << "the cluster's are in no rank's file";
}

}  // namespace
}  // namespace tandem::traces::counters_test
