// The best time between checkpoints: as published, by search, and whether anything is better than what the search finds.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/campaign/expected.h"
#include "sim/campaign/young_daly.h"

namespace tandem::sim::campaign_interval_test {
namespace {

constexpr Seconds minute = 60, hour = 3600;

CampaignModel failing_every(Seconds mtbf, Seconds stall) {
  CampaignModel model;
  model.failures[Component::node] = 1 / mtbf;
  model.checkpoint.stall = stall;
  return model;
}

// Daly 2006, captions of figures 3, 4 and 5: the optimum that the formula predicts for a checkpoint of 5 min.
TEST(CampaignInterval, DalysFormulaGivesHisFigures) {
  EXPECT_NEAR(daly_interval(5 * minute, 24 * hour), 117 * minute, 0.5 * minute);
  EXPECT_NEAR(daly_interval(5 * minute, 6 * hour), 57 * minute, 0.5 * minute);
  EXPECT_NEAR(daly_interval(5 * minute, 15 * minute), 9.1 * minute, 0.05 * minute);
  EXPECT_EQ(daly_interval(5 * minute, 2 * minute), 2 * minute);
  EXPECT_DOUBLE_EQ(young_interval(2, 100), 20);
}

// Daly: his formula is within a few per cent as long as a checkpoint takes less than half the time between failures; Young's is
// its first term, so that it is off by the second, sqrt(stall / (2 mtbf)) / 3, and the stall.
TEST(CampaignInterval, TheSearchAgreesWithYoungAndDaly) {
  for (const Seconds mtbf : {20 * minute, 3 * hour, 24 * hour, 240 * hour}) {
    for (const Seconds stall : {0.5, 3.0, 30.0, 300.0}) {
      const Seconds best = best_interval(failing_every(mtbf, stall), 1e-3);
      EXPECT_NEAR(best / daly_interval(stall, mtbf), 1, 0.005) << mtbf << ' ' << stall;
      const double young_off = stall / young_interval(stall, mtbf) + std::sqrt(stall / (2 * mtbf)) / 3;
      EXPECT_NEAR(best / young_interval(stall, mtbf), 1, young_off) << mtbf << ' ' << stall;
    }
  }
}

TEST(CampaignInterval, NothingIsBetterThanTheBest) {
  CampaignModel model = failing_every(3 * hour, 4);
  for (const Seconds write : {0.0, 60.0}) {
    for (const double planned : {0.0, 1 / (10 * hour)}) {
      model.checkpoint.write = write;
      model.planned_rate = planned;
      model.restart = model.detection = 5 * minute;
      const Seconds best = best_interval(model, 1);
      model.interval = best;
      const double highest = expected_goodput(model);
      for (Seconds interval = 1; interval < 24 * hour; interval *= 1.01) {
        model.interval = interval;
        EXPECT_LE(expected_goodput(model), highest) << interval << " beside " << best;
      }
    }
  }
}

TEST(CampaignInterval, KeepsToItsBounds) {
  EXPECT_NEAR(best_interval(failing_every(hour, 0), 7), 7, 1e-4);  // a free checkpoint: after every step
  CampaignModel safe;
  safe.work = 100;
  EXPECT_EQ(best_interval(safe, 1), 100);  // nothing fails: at the end
  CampaignModel short_one = failing_every(240 * hour, 300);
  short_one.work = 60;
  EXPECT_EQ(best_interval(short_one, 1), 60);
}

}  // namespace
}  // namespace tandem::sim::campaign_interval_test
