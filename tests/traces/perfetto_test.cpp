#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/traces/read_trace.h"
#include "tests/traces/sample.h"

namespace tandem::traces::perfetto_test {
namespace {

struct NamedAnnotations {
  std::map<std::string, std::int64_t> integers;
  std::map<std::string, double> doubles;
  std::map<std::string, std::string> strings;
};

NamedAnnotations annotations_of(const perfetto::Trace& trace, const perfetto::TrackEvent& event) {
  NamedAnnotations named;
  for (const perfetto::DebugAnnotation& annotation : event.debug_annotations()) {
    const auto& entry = trace.packet(0).interned_data().debug_annotation_names(static_cast<int>(annotation.name_iid()) - 1);
    EXPECT_EQ(entry.iid(), annotation.name_iid());
    if (annotation.has_int_value()) named.integers[entry.name()] = annotation.int_value();
    if (annotation.has_double_value()) named.doubles[entry.name()] = annotation.double_value();
    if (annotation.has_string_value()) named.strings[entry.name()] = annotation.string_value();
  }
  return named;
}

perfetto::Trace trace_of(const std::vector<TraceSource>& sources) { return parse_perfetto(written_trace(sources, ".pftrace")); }

TEST(Perfetto, FirstPacketClearsTheStateThatAllOthersNeed) {
  const Sample sample = pipeline_sample(2, 2, 2);
  const perfetto::Trace trace = trace_of({{"simulated", &sample.dag, &sample.timeline}});
  for (int i = 0; i < trace.packet_size(); ++i) {
    const perfetto::TracePacket& packet = trace.packet(i);
    EXPECT_EQ(packet.first_packet_on_sequence(), i == 0);
    EXPECT_EQ(packet.sequence_flags(),
              i == 0 ? perfetto::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED : perfetto::TracePacket::SEQ_NEEDS_INCREMENTAL_STATE);
    EXPECT_EQ(packet.has_interned_data(), i == 0);
    EXPECT_EQ(packet.trusted_packet_sequence_id(), 1U);
  }
}

TEST(Perfetto, AProcessPerRankAndAThreadPerStreamInUse) {
  const Sample sample = pipeline_sample(2, 2, 1);
  const perfetto::Trace trace = trace_of({{"simulated", &sample.dag, &sample.timeline}});
  std::map<std::uint64_t, std::int32_t> pid_of_uuid;
  std::map<std::int32_t, std::set<std::string>> threads;
  for (const perfetto::TracePacket& packet : trace.packet()) {
    if (!packet.has_track_descriptor()) continue;
    const perfetto::TrackDescriptor& track = packet.track_descriptor();
    EXPECT_NE(track.uuid(), 0U);
    if (track.has_process()) {
      EXPECT_TRUE(pid_of_uuid.emplace(track.uuid(), track.process().pid()).second);
      EXPECT_EQ(track.child_ordering(), perfetto::TrackDescriptor::EXPLICIT);
    } else {
      EXPECT_EQ(pid_of_uuid.at(track.parent_uuid()), track.thread().pid()) << "a thread before its process";
      EXPECT_TRUE(threads[track.thread().pid()].insert(track.thread().thread_name()).second);
      EXPECT_EQ(track.sibling_order_rank(), track.thread().tid());
    }
  }
  // Stage 0 sends forward and receives backward, stage 1 the reverse; pid = world rank + 1.
  const std::set<std::string> first{"compute", "dp", "pp send forward", "pp receive backward"};
  const std::set<std::string> last{"compute", "dp", "pp receive forward", "pp send backward"};
  EXPECT_EQ(threads, (std::map<std::int32_t, std::set<std::string>>{{1, first}, {2, first}, {3, last}, {4, last}}));
}

TEST(Perfetto, AKernelTellsItsWorkAndRates) {
  const Sample sample = kernels_at({{0, 2e-9}});
  const perfetto::Trace trace = trace_of({{"simulated", &sample.dag, &sample.timeline}});
  const perfetto::TrackEvent& begin = trace.packet(trace.packet_size() - 2).track_event();
  ASSERT_EQ(begin.type(), perfetto::TrackEvent::TYPE_SLICE_BEGIN);
  const NamedAnnotations named = annotations_of(trace, begin);
  EXPECT_EQ(named.strings.at("op"), "gemm");
  EXPECT_EQ(named.strings.at("phase"), "forward");
  EXPECT_EQ(named.strings.at("operands"), "bf16[2,4] bf16[4,8] -> bf16[2,8]");
  EXPECT_EQ(named.integers.at("layer"), 3);
  EXPECT_FALSE(named.integers.contains("micro_batch"));
  EXPECT_EQ(named.integers.at("bytes"), 2 * (2 * 4 + 4 * 8 + 2 * 8));  // bf16, each operand once
  EXPECT_DOUBLE_EQ(named.doubles.at("flops"), 2 * 2 * 8 * 4);          // 2 m n k
  EXPECT_DOUBLE_EQ(named.doubles.at("TFLOP/s"), 128 / 2e-9 / 1e12);
  EXPECT_DOUBLE_EQ(named.doubles.at("GB/s"), 112 / 2e-9 / 1e9);
}

TEST(Perfetto, ATaskTellsWhatItIsBoundBy) {
  const Sample sample = pipeline_sample(1, 2, 1);
  TraceSource source{"simulated", &sample.dag, &sample.timeline};
  source.bound = [&](TaskId id) { return is_communication(sample.dag.tasks[id].op) ? "nvlink" : "memory"; };
  const perfetto::Trace trace = trace_of({source});
  int slices = 0;
  for (const perfetto::TracePacket& packet : trace.packet()) {
    if (packet.track_event().type() != perfetto::TrackEvent::TYPE_SLICE_BEGIN) continue;
    const NamedAnnotations named = annotations_of(trace, packet.track_event());
    EXPECT_EQ(named.strings.at("bound"), named.strings.contains("communicator") ? "nvlink" : "memory");
    ++slices;
  }
  EXPECT_EQ(slices, static_cast<int>(sample.dag.tasks.size()));
}

TEST(Perfetto, ACollectiveTellsItsCommunicatorAndCategory) {
  const Sample sample = pipeline_sample(1, 3, 1);
  const perfetto::Trace trace = trace_of({{"simulated", &sample.dag, &sample.timeline}});
  const auto& categories = trace.packet(0).interned_data().event_categories();
  int collectives = 0;
  for (const perfetto::TracePacket& packet : trace.packet()) {
    if (packet.track_event().type() != perfetto::TrackEvent::TYPE_SLICE_BEGIN) continue;
    const NamedAnnotations named = annotations_of(trace, packet.track_event());
    const std::string category = categories.at(static_cast<int>(packet.track_event().category_iids(0)) - 1).name();
    if (!named.strings.contains("communicator")) {
      EXPECT_EQ(category, named.strings.at("phase"));
      continue;
    }
    ++collectives;
    EXPECT_EQ(category, "communication");
    EXPECT_EQ(named.strings.at("communicator"), "dp of stage 0");
    EXPECT_EQ(named.integers.at("communicator_size"), 3);
    EXPECT_EQ(named.integers.at("bytes"), 4 * 32 * 32);  // the fp32 gradient of `pipeline_sample`
  }
  EXPECT_EQ(collectives, 3);
}

TEST(Perfetto, EveryFlowLeavesOnceAndEndsOnce) {
  const Sample sample = pipeline_sample(3, 3, 4);
  const perfetto::Trace trace = trace_of({{"simulated", &sample.dag, &sample.timeline}});
  struct Ends {
    std::size_t sources = 0, steps = 0, terminations = 0;
    std::uint64_t leaves_ns = 0, first_arrival_ns = ~std::uint64_t{0}, last_arrival_ns = 0, terminates_ns = 0;
  };
  std::map<std::uint64_t, Ends> flows;
  for (const perfetto::TracePacket& packet : trace.packet()) {
    const bool begins = packet.track_event().type() == perfetto::TrackEvent::TYPE_SLICE_BEGIN;
    const auto arrive = [&](Ends& ends) {
      EXPECT_FALSE(begins);
      ends.first_arrival_ns = std::min(ends.first_arrival_ns, packet.timestamp());
      ends.last_arrival_ns = std::max(ends.last_arrival_ns, packet.timestamp());
    };
    for (const std::uint64_t id : packet.track_event().flow_ids()) {
      Ends& ends = flows[id];
      if (begins) {
        ++ends.sources;
        ends.leaves_ns = packet.timestamp();
      } else {
        ++ends.steps;
        arrive(ends);
      }
    }
    for (const std::uint64_t id : packet.track_event().terminating_flow_ids()) {
      Ends& ends = flows[id];
      ++ends.terminations;
      ends.terminates_ns = packet.timestamp();
      arrive(ends);
    }
  }
  ASSERT_EQ(flows.size(), sample.dag.groups.size());
  for (const auto& [id, ends] : flows) {
    EXPECT_EQ(ends.sources, 1U) << id;
    EXPECT_EQ(ends.terminations, 1U) << id;
    EXPECT_EQ(ends.steps + 2, sample.dag.members_of(static_cast<GroupId>(id - 1)).size()) << id;
    EXPECT_LT(ends.leaves_ns, ends.first_arrival_ns) << id;
    EXPECT_EQ(ends.terminates_ns, ends.last_arrival_ns) << id;
  }
}

TEST(Perfetto, TwoSourcesShareNothing) {
  const Sample sample = pipeline_sample(2, 1, 2);
  const TraceSource simulated{"simulated", &sample.dag, &sample.timeline}, measured{"measured", &sample.dag, &sample.timeline};
  const perfetto::Trace one = trace_of({simulated}), both = trace_of({simulated, measured});
  EXPECT_EQ(slices_of(both).size(), 2 * slices_of(one).size());

  std::set<std::uint64_t> uuids, flows;
  std::set<std::int32_t> pids;
  std::vector<std::string> names;
  std::size_t tracks = 0, sources = 0;
  for (const perfetto::TracePacket& packet : both.packet()) {
    if (packet.has_track_descriptor()) {
      uuids.insert(packet.track_descriptor().uuid());
      ++tracks;
    }
    if (packet.track_descriptor().has_process()) {
      pids.insert(packet.track_descriptor().process().pid());
      names.push_back(packet.track_descriptor().name());
    }
    for (const std::uint64_t id : packet.track_event().flow_ids()) {
      flows.insert(id);
      ++sources;  // transfers have two members, so no flow has steps
    }
  }
  EXPECT_EQ(uuids.size(), tracks);
  EXPECT_EQ(pids, (std::set<std::int32_t>{1, 2, 3, 4}));
  EXPECT_EQ(flows.size(), sources);
  EXPECT_THAT(names, testing::ElementsAre("simulated · rank 0 · pp 0 · dp 0", "simulated · rank 1 · pp 1 · dp 0",
                                          "measured · rank 0 · pp 0 · dp 0", "measured · rank 1 · pp 1 · dp 0"));
}

}  // namespace
}  // namespace tandem::traces::perfetto_test
