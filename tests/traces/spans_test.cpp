#include "traces/spans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <stdexcept>

#include "tests/traces/sample.h"

namespace tandem::traces::spans_test {
namespace {

using testing::ElementsAre;
using testing::Pair;

std::vector<std::pair<std::int64_t, std::int64_t>> rounded(const std::vector<std::pair<Seconds, Seconds>>& times) {
  const Sample sample = kernels_at(times);
  std::vector<std::pair<std::int64_t, std::int64_t>> out;
  const SourceSpans spans = spans_of({{"simulated", &sample.dag, &sample.timeline}})[0];
  for (const Span& span : spans.spans) out.emplace_back(span.start_ns, span.end_ns);
  return out;
}

TEST(Spans, TimesThatMeetStillMeetAfterRounding) {
  EXPECT_THAT(rounded({{0, 1.4e-9}, {1.4e-9, 2.5001e-9}, {2.5001e-9, 2.5001e-9}}),
              ElementsAre(Pair(0, 1), Pair(1, 3), Pair(3, 3)));
}

TEST(Spans, OverlapOfAMeasuredClockIsTakenOffTheLaterSpan) {
  EXPECT_THAT(rounded({{0, 10e-9}, {8e-9, 20e-9}, {12e-9, 15e-9}}), ElementsAre(Pair(0, 10), Pair(10, 20), Pair(20, 20)));
}

TEST(Spans, AnHourIntoTheRunNanosecondsAreKept) {
  EXPECT_THAT(rounded({{3600.000000123, 3600.000000124}}), ElementsAre(Pair(3'600'000'000'123, 3'600'000'000'124)));
}

TEST(Spans, EveryTaskIsASpanOfItsRankAndStream) {
  const Sample sample = pipeline_sample(3, 2, 4);
  const SourceSpans spans = spans_of({{"simulated", &sample.dag, &sample.timeline}})[0];
  std::vector<int> seen(sample.dag.tasks.size(), 0);
  for (const Span& span : spans.spans) {
    ++seen[span.task];
    EXPECT_EQ(spans.tracks[span.track].rank, sample.dag.tasks[span.task].rank);
    EXPECT_EQ(spans.tracks[span.track].stream, sample.dag.tasks[span.task].stream);
  }
  EXPECT_THAT(seen, testing::Each(1));
}

TEST(Spans, OnlyTheRanksAskedForAreWrittenAndOnlyFlowsAmongThem) {
  const Sample sample = pipeline_sample(3, 1, 2);
  const SourceSpans spans = spans_of({{"simulated", &sample.dag, &sample.timeline, {{0}, {1}}}})[0];
  for (const Span& span : spans.spans) EXPECT_LT(sample.dag.tasks[span.task].rank, 2U);
  EXPECT_EQ(spans.flows.size(), 4U);  // two micro-batches there and back between ranks 0 and 1; an all-reduce has one member
}

TEST(Spans, AFlowLeavesFromTheSend) {
  const Sample sample = pipeline_sample(3, 2, 3);
  const SourceSpans spans = spans_of({{"simulated", &sample.dag, &sample.timeline}})[0];
  EXPECT_EQ(spans.flows.size(), sample.dag.groups.size());
  for (const Flow& flow : spans.flows) {
    const Task& source = sample.dag.tasks[spans.spans[flow.spans.front()].task];
    EXPECT_NE(source.op, OpKind::receive);
    EXPECT_EQ(source.group, flow.group);
  }
}

TEST(Spans, AFlowArrivesInTheOrderOfTheEnds) {
  Sample sample = pipeline_sample(1, 4, 1);
  const std::span<const TaskId> members = sample.dag.members_of(0);
  for (std::size_t i = 0; i < members.size(); ++i) sample.timeline.end[members[i]] += static_cast<double>(10 - i) * 1e-9;
  const SourceSpans spans = spans_of({{"measured", &sample.dag, &sample.timeline}})[0];
  const std::vector<std::uint32_t>& flow = spans.flows.at(0).spans;
  ASSERT_EQ(flow.size(), 4U);
  EXPECT_EQ(spans.spans[flow[0]].task, members[0]);  // all began together
  EXPECT_LT(spans.spans[flow[1]].end_ns, spans.spans[flow[2]].end_ns);
  EXPECT_LT(spans.spans[flow[2]].end_ns, spans.spans[flow[3]].end_ns);
  EXPECT_EQ(spans.spans[flow[0]].flow, FlowRole::source);
  EXPECT_EQ(spans.spans[flow[2]].flow, FlowRole::step);
  EXPECT_EQ(spans.spans[flow[3]].flow, FlowRole::last);
}

TEST(Spans, AFlowThatWouldArriveBeforeItLeftIsLeftOut) {
  Sample sample = pipeline_sample(2, 1, 1);
  for (TaskId id = 0; id < sample.dag.tasks.size(); ++id) {
    if (sample.dag.tasks[id].op == OpKind::receive) sample.timeline.end[id] = sample.timeline.start[id];
  }
  EXPECT_TRUE(spans_of({{"measured", &sample.dag, &sample.timeline}})[0].flows.empty());
}

TEST(Spans, AProcessIsNamedAfterTheAxesInUseAndTheRanksItStandsFor) {
  Sample sample = pipeline_sample(2, 2, 1);
  sample.dag.ranks[3].count = 1024;
  const std::vector<TraceSource> one{{"simulated", &sample.dag, &sample.timeline}};
  EXPECT_EQ(spans_of(one)[0].process_names[3], "rank 3 · pp 1 · dp 1 ×1024");
  EXPECT_EQ(spans_of({one[0], one[0]})[1].process_names[0], "simulated · rank 0 · pp 0 · dp 0");
}

TEST(Spans, AProcessTellsWhichRanksItWasAskedForAs) {
  Sample sample = pipeline_sample(2, 1, 1);
  for (Rank& rank : sample.dag.ranks) rank.count = 8;
  sample.dag.ranks[1].world_rank = 8;
  const SourceSpans spans = spans_of({{"simulated", &sample.dag, &sample.timeline, {{0, {0}}, {1, {8, 9, 10, 12, 14, 15}}}}})[0];
  EXPECT_EQ(spans.process_names[0], "rank 0 · pp 0 · dp 0 ×8");
  EXPECT_EQ(spans.process_names[1], "rank 8 · pp 1 · dp 0 ×8 (among them 8-10, 12, 14-15)");
}

TEST(Spans, ATimelineOfAnotherDagIsRefused) {
  Sample sample = pipeline_sample(1, 1, 1);
  sample.timeline.end.pop_back();
  EXPECT_THROW(spans_of({{"measured", &sample.dag, &sample.timeline}}), std::logic_error);
}

}  // namespace
}  // namespace tandem::traces::spans_test
