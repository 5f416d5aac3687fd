#include "studies/validate/cross_validation.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tandem::studies::cross_validation_test {
namespace {

ValidatedRow row(const std::string& source, const std::string& gpu, double ratio) {
  ValidatedRow row;
  row.source = source;
  row.gpu = gpu;
  row.measured = 1;
  row.prediction = Prediction{};
  row.prediction->step_time = ratio;
  return row;
}

TEST(CrossValidation, NeedsSourcesToLeaveOut) {
  const std::vector<ValidatedRow> rows{row("a", "h100", 1.1), row("a", "h100", 0.9)};
  EXPECT_TRUE(cross_validate(rows).empty());
}

// Every source is 10 % slow: whichever is left out, the others say so.
TEST(CrossValidation, FindsWhatSourcesShare) {
  const std::vector<ValidatedRow> rows{row("a", "h100", 1.1), row("b", "h100", 1.1), row("c", "h100", 1.1)};
  const auto results = cross_validate(rows);
  ASSERT_EQ(results.size(), 2U);  // all, dense
  EXPECT_NEAR(results[0].fitted, 0, 1e-9);
  EXPECT_NEAR(results[0].left_out, 0, 1e-9);
}

// One source cannot tell the other's speed: left out, it is off by all of the difference, and fitted by half of it.
TEST(CrossValidation, SeesWhatWasOnlyFitted) {
  const std::vector<ValidatedRow> rows{row("a", "h100", std::exp(0.01)), row("b", "h100", std::exp(-0.01))};
  const auto results = cross_validate(rows);
  EXPECT_NEAR(results[0].fitted, 0.01, 1e-4);
  EXPECT_NEAR(results[0].left_out, 0.02, 5e-4);
}

TEST(CrossValidation, GpusHaveSpeedsOfTheirOwn) {
  const std::vector<ValidatedRow> rows{row("a", "h100", 1.2), row("b", "h100", 1.2), row("c", "a100", 0.9),
                                       row("d", "a100", 0.9)};
  EXPECT_NEAR(cross_validate(rows)[0].left_out, 0, 1e-9);
}

}  // namespace
}  // namespace tandem::studies::cross_validation_test
