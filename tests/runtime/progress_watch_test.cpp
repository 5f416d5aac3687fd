#include "runtime/launch/progress_watch.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "runtime/launch/message.h"
#include "runtime/launch/ranks_text.h"

namespace tandem::progress_watch_test {
namespace {

using Reason = ProgressWatch::Reason;
constexpr Seconds timeout = 10, silence = 100;

std::string culprit(const ProgressWatch& watch, Seconds now) {
  const auto found = watch.culprit(now);
  if (!found) return "none";
  const std::string reason = found->reason == Reason::silent ? "silent" : found->reason == Reason::stuck ? "stuck" : "deadlock";
  return reason + " " + std::to_string(found->rank);
}

ProgressReport working(std::uint64_t count) { return {.count = count, .task = 1, .waiting = false}; }
ProgressReport waiting(std::uint64_t count) { return {.count = count, .task = 2, .waiting = true}; }

TEST(ProgressWatch, BlamesWhoDoesNothingWhileAnotherWaits) {
  ProgressWatch watch(3, timeout, silence, 0);
  watch.report(0, waiting(1), 5);
  watch.report(1, working(1), 3);
  watch.report(2, working(1), 4);
  EXPECT_EQ(culprit(watch, 14.9), "none");  // rank 0 has waited for 9.9 s
  EXPECT_EQ(culprit(watch, 15), "stuck 1");
  watch.report(1, working(2), 15);
  EXPECT_EQ(culprit(watch, 15), "stuck 2");
  watch.report(2, working(2), 16);
  EXPECT_EQ(culprit(watch, 24.9), "none");
}

TEST(ProgressWatch, LongWorkIsNoFaultWhileNobodyWaits) {
  ProgressWatch watch(2, timeout, silence, 0);
  for (const Seconds now : {10.0, 20.0, 30.0}) {
    watch.report(0, working(1), now);
    watch.report(1, working(1), now);
    EXPECT_EQ(culprit(watch, now), "none");
  }
}

TEST(ProgressWatch, AReportWithoutProgressIsNone) {
  ProgressWatch watch(2, timeout, silence, 0);
  for (Seconds now = 0; now < timeout; ++now) {
    watch.report(0, waiting(1), now);
    watch.report(1, working(1), now);
    EXPECT_EQ(culprit(watch, now), "none");
  }
  EXPECT_EQ(culprit(watch, timeout), "stuck 1");
}

TEST(ProgressWatch, OfAllThatWaitTheFirstIsNamed) {
  ProgressWatch watch(3, timeout, silence, 0);
  watch.report(0, waiting(1), 4);
  watch.report(1, waiting(1), 2);
  watch.report(2, waiting(1), 3);
  EXPECT_EQ(culprit(watch, 13.9), "none");
  EXPECT_EQ(culprit(watch, 14), "deadlock 1");
  watch.report(2, waiting(2), 14);
  EXPECT_EQ(culprit(watch, 14), "none");
}

TEST(ProgressWatch, SilenceIsAFaultOfItsOwn) {
  ProgressWatch watch(2, timeout, silence, 0);
  watch.report(0, waiting(1), 50);
  watch.report(1, waiting(1), 51);
  EXPECT_EQ(culprit(watch, 149), "deadlock 0");
  watch.report(1, waiting(1), 149);
  EXPECT_EQ(culprit(watch, 150), "silent 0");
}

TEST(RanksText, NamesRuns) {
  EXPECT_EQ(ranks_text({3}), "rank 3");
  EXPECT_EQ(ranks_text({3, 4}), "ranks 3, 4");
  EXPECT_EQ(ranks_text({0, 2, 3, 4, 9}), "ranks 0, 2-4, 9");
  std::vector<std::uint32_t> even;
  for (std::uint32_t rank = 0; rank < 40; rank += 2) even.push_back(rank);
  EXPECT_EQ(ranks_text(even), "ranks 0, 2, 4, 6, 8, 10, 12, 14 and 12 more");
}

TEST(Payload, ComesBackAndDoesNotOverrun) {
  const std::string bytes = PayloadWriter().number(7).text(std::string("a\0b", 3)).text("").bytes();
  PayloadReader whole(bytes);
  EXPECT_EQ(whole.number(), 7U);
  EXPECT_EQ(whole.text(), std::string("a\0b", 3));
  EXPECT_EQ(whole.text(), "");
  EXPECT_TRUE(whole.at_end());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    PayloadReader cut(std::string_view(bytes).substr(0, length));
    EXPECT_THROW((cut.number(), cut.text(), cut.text()), std::invalid_argument) << length;
  }
}

}  // namespace
}  // namespace tandem::progress_watch_test
