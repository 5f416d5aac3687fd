// Draws the arrows that Perfetto's trace processor would (src/trace_processor/importers/common/flow_tracker.cc and
// importers/proto/track_event_event_importer.h): events in the order of their times, of equal times in that of the file; a flow
// id on a slice's begin or end starts a flow, or leads one that is under way to that slice; a terminating id ends it there.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/traces/read_trace.h"
#include "tests/traces/sample.h"

namespace tandem::traces::perfetto_flows_test {
namespace {

/// Of one flow: which tracks it leads over, and how many arrows that takes.
struct Arrows {
  std::set<std::uint64_t> tracks;
  std::size_t count = 0;
};

std::map<std::uint64_t, Arrows> arrows_of(const perfetto::Trace& trace) {
  std::vector<const perfetto::TracePacket*> events;
  for (const perfetto::TracePacket& packet : trace.packet()) {
    if (packet.has_track_event()) events.push_back(&packet);
  }
  std::ranges::stable_sort(events, {}, [](const perfetto::TracePacket* packet) { return packet->timestamp(); });

  std::map<std::uint64_t, Arrows> arrows;
  std::set<std::uint64_t> active, open;  // flows; tracks with a slice
  for (const perfetto::TracePacket* packet : events) {
    const perfetto::TrackEvent& event = packet->track_event();
    const std::uint64_t track = event.track_uuid();
    if (event.type() == perfetto::TrackEvent::TYPE_SLICE_BEGIN) {
      EXPECT_TRUE(open.insert(track).second) << "a slice begins before another ended";
    } else if (event.type() == perfetto::TrackEvent::TYPE_SLICE_END) {
      EXPECT_EQ(open.erase(track), 1U) << "no slice to end";
    }
    const auto lead_here = [&](std::uint64_t flow) {
      arrows[flow].tracks.insert(track);
      ++arrows[flow].count;
    };
    for (const std::uint64_t flow : event.flow_ids()) {
      if (active.insert(flow).second) {
        EXPECT_FALSE(arrows.contains(flow)) << "flow " << flow << " starts again";
        arrows[flow].tracks.insert(track);
      } else {
        lead_here(flow);
      }
    }
    for (const std::uint64_t flow : event.terminating_flow_ids()) {
      EXPECT_EQ(active.erase(flow), 1U) << "flow " << flow << " ends before it starts";
      lead_here(flow);
    }
  }
  EXPECT_TRUE(active.empty());
  return arrows;
}

/// Each group of the DAG is a chain of arrows over all its members.
void expect_chains(const Sample& sample) {
  const std::map<std::uint64_t, Arrows> arrows =
      arrows_of(parse_perfetto(written_trace({{"simulated", &sample.dag, &sample.timeline}}, ".pftrace")));
  ASSERT_EQ(arrows.size(), sample.dag.groups.size());
  for (const auto& [flow, of_flow] : arrows) {
    const std::size_t members = sample.dag.members_of(static_cast<GroupId>(flow - 1)).size();
    EXPECT_EQ(of_flow.tracks.size(), members) << flow;
    EXPECT_EQ(of_flow.count, members - 1) << flow;
  }
}

TEST(PerfettoFlows, AreArrowsOverAllMembersWhereTheseShareTheirTimes) { expect_chains(pipeline_sample(4, 5, 6)); }

TEST(PerfettoFlows, AreArrowsOverAllMembersOfAMeasuredTimeline) {
  Sample sample = pipeline_sample(3, 6, 2);
  for (std::size_t task = 0; task < sample.dag.tasks.size(); ++task) {
    sample.timeline.start[task] -= static_cast<double>(task * 7919 % 5) * 1e-9;  // which leaves starts before all other ends
    if (sample.timeline.start[task] < 0) sample.timeline.start[task] = 0;
    sample.timeline.end[task] += static_cast<double>(task * 104729 % 3) * 1e-9;
  }
  expect_chains(sample);
}

}  // namespace
}  // namespace tandem::traces::perfetto_flows_test
