#include "sim/late_history.h"

#include <gtest/gtest.h>

#include "tests/runtime/small_dag.h"

namespace tandem::sim::late_history_test {
namespace {

/// A pair and four that contain it.
Dag two_spans() {
  SmallDag small;
  small.communicator(2, {});
  small.communicator(4, {});
  return small.finish();
}

TEST(LateHistory, AddsToThePartOfTheSpanAndKeepsTheSmallestFirst) {
  const Dag dag = two_spans();
  const RankSpans spans(dag);
  LateHistory history;
  const auto add = [&](SpanId span, Seconds own, std::vector<LastingDeviation> lasting) {
    history.add({.span = span, .own = own}, lasting, spans);
  };
  add(spans.of(1), 1, {{7, 10}});
  add(RankSpans::one, 2, {{7, 20}, {8, 30}});
  add(spans.of(0), 4, {});
  add(RankSpans::one, 8, {{9, 40}, {8, 50}});
  add(spans.of(1), 16, {{8, 60}});

  ASSERT_EQ(history.size(), 3U);
  const auto expect = [&](std::size_t at, SpanId span, Seconds own, const std::vector<LastingDeviation>& lasting) {
    EXPECT_EQ(history.part(at).span, span);
    EXPECT_EQ(history.part(at).own, own);
    ASSERT_EQ(history.lasting(at).size(), lasting.size());
    for (std::size_t i = 0; i < lasting.size(); ++i) {
      EXPECT_EQ(history.lasting(at)[i].rank, lasting[i].rank);
      EXPECT_EQ(history.lasting(at)[i].deviation, lasting[i].deviation);
    }
  };
  expect(0, RankSpans::one, 10, {{7, 20}, {8, 80}, {9, 40}});
  expect(1, spans.of(0), 4, {});
  expect(2, spans.of(1), 17, {{7, 10}, {8, 60}});
}

TEST(LateHistories, AChangeIsSeenByNoOtherHolder) {
  LateHistories histories;
  LateHistories::Holder mine;
  EXPECT_FALSE(mine);
  histories.own(mine).base = 1;
  const LateHistories::Holder yours = mine;
  histories.own(mine).base = 2;
  EXPECT_EQ(yours->base, 1);
  EXPECT_EQ(mine->base, 2);
  const LateHistory* const place = &*mine;
  histories.own(mine).base = 3;  // nobody else holds it
  EXPECT_EQ(&*mine, place);
}

TEST(LateHistories, MemoryIsUsedAgainAndEmptyThen) {
  LateHistories histories;
  LateHistories::Holder first;
  histories.own(first).base = 1;
  const LateHistory* const place = &*first;
  first = {};
  LateHistories::Holder second;
  EXPECT_EQ(histories.own(second).base, 0);
  EXPECT_EQ(&*second, place);
}

}  // namespace
}  // namespace tandem::sim::late_history_test
