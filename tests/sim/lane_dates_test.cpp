#include "sim/lane_dates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

namespace tandem::sim::lane_dates_test {
namespace {

TEST(LaneDates, OfOneInstantComeByTask) {
  LaneDates dates(4);
  for (const TaskId task : {7, 3, 9, 5}) dates.set({1.5, task, task % 4});  // 7 and 3 have one lane
  dates.set({0.5, 11, 2});
  std::vector<TaskId> order;
  for (; !dates.empty(); dates.remove(dates.first().lane)) order.push_back(dates.first().task);
  EXPECT_EQ(order, (std::vector<TaskId>{11, 3, 5}));
}

/// Against a map, in which the earliest is looked for.
TEST(LaneDates, HaveTheEarliestFirstWhateverChanges) {
  constexpr std::uint32_t lanes = 40;
  std::mt19937 random(20261128);
  LaneDates dates(lanes);
  std::map<std::uint32_t, LaneDates::Date> by_lane;
  for (int change = 0; change < 20'000; ++change) {
    const auto lane = static_cast<std::uint32_t>(random() % lanes);
    if (random() % 3 == 0) {
      dates.remove(lane);
      by_lane.erase(lane);
    } else {
      const LaneDates::Date date{static_cast<double>(random() % 50), static_cast<TaskId>(random() % 1000 * lanes + lane), lane};
      dates.set(date);
      by_lane[lane] = date;
    }
    ASSERT_EQ(dates.empty(), by_lane.empty());
    if (by_lane.empty()) continue;
    const auto key = [](const auto& entry) { return std::tuple(entry.second.at, entry.second.task); };
    const LaneDates::Date& earliest = std::ranges::min_element(by_lane, {}, key)->second;
    ASSERT_EQ(dates.first().lane, earliest.lane);
    ASSERT_EQ(dates.first().at, earliest.at);
    ASSERT_EQ(dates.first().task, earliest.task);
  }
}

}  // namespace
}  // namespace tandem::sim::lane_dates_test
