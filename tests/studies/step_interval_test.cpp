#include "studies/step/step_interval.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tandem::studies::step_interval_test {
namespace {

StepResult of_products(Seconds time) {
  StepResult result;
  result.step_time = time;
  result.kinds = {{.name = "gemm", .count = 1, .time = time}};
  return result;
}

double error_of(const StepResult& result) { return total(expected_errors(result)); }

TEST(StepInterval, OfProductsAloneIsTheirErrorAndTheFrameworks) {
  EXPECT_NEAR(error_of(of_products(2)), std::hypot(0.05, 0.06), 1e-12);
}

TEST(StepInterval, WaitingIsAsUncertainAsWhatIsWaitedFor) {
  StepResult half = of_products(1);
  half.step_time = 2;
  half.parts.bubble = 1;
  EXPECT_NEAR(error_of(half), error_of(of_products(2)), 1e-12);
}

TEST(StepInterval, ExposedCommunicationAndExpertsWidenIt) {
  StepResult exposed = of_products(1);
  exposed.step_time = 2;
  exposed.parts.exposed[static_cast<std::size_t>(Axis::tp)] = 1;
  EXPECT_NEAR(error_of(exposed), std::sqrt(std::pow(0.5 * 0.05, 2) + std::pow(0.5 * 0.2, 2) + std::pow(0.06, 2)), 1e-12);
  StepResult experts = of_products(2);
  experts.kinds.push_back({.name = "route", .count = 1, .time = 0});
  EXPECT_NEAR(error_of(experts), std::hypot(0.05, 0.12), 1e-12);
}

// A quarter of the step in kernels of which none was measured.
TEST(StepInterval, ScansWidenIt) {
  StepResult scans = of_products(1.5);
  scans.step_time = 2;
  scans.kinds.push_back({.name = "ssd_scan_backward", .count = 1, .time = 0.5});
  EXPECT_NEAR(error_of(scans), std::sqrt(std::pow(0.75 * 0.05, 2) + std::pow(0.25 * 0.42, 2) + std::pow(0.06, 2)), 1e-12);
}

const StepClass nemo{false, "hopper", "nemo", "h100"};
const IntervalTable known{{{"all", {90, 30, 3.0}}, {"dense hopper", {40, 10, 2.0}}}, {{"h100", 40}}, {{"nemo", 20}}, 0, 0.2, 0.1};
constexpr ErrorParts expected{0.03, 0, 0, 0.04};  // together 0.05

double width(const Interval& interval) { return std::log(interval.high); }

TEST(StepInterval, IsTheFactorOfTheNarrowestClassTimesTheExpectedError) {
  const Interval interval = interval_around(1, expected, nemo, known);
  EXPECT_EQ(interval.known_class, "dense hopper");
  EXPECT_NEAR(width(interval), 2 * 0.05, 1e-12);
  EXPECT_NEAR(interval.low * interval.high, 1, 1e-12);
  StepClass experts = nemo;
  experts.has_experts = true;
  EXPECT_NEAR(width(interval_around(1, expected, experts, known)), 3 * 0.05, 1e-12);
}

TEST(StepInterval, WhatPartsDoNotExplainIsUnknown) {
  const Interval interval = interval_around(1, expected, nemo, known);
  double shares = 0;
  for (std::size_t part = 0; part < error_part_count; ++part) shares += interval.share_of(static_cast<ErrorPart>(part));
  EXPECT_NEAR(shares, 1, 1e-12);
  EXPECT_NEAR(interval.share_of(ErrorPart::products) / interval.share_of(ErrorPart::collectives), 9.0 / 16, 1e-12);
  EXPECT_NEAR(interval.share_of(ErrorPart::unknown), 1 - std::pow(nine_in_ten / 2, 2), 1e-12);
  EXPECT_STREQ(best_remedy(interval).key, "collectives");
  EXPECT_NEAR(std::log1p(interval.give_or_take_without(collective_parts)),
              std::sqrt(std::pow(2 * 0.05, 2) - std::pow(nine_in_ten * 0.04, 2)), 1e-12);
}

TEST(StepInterval, AClassThatIsPredictedBetterHasSmallerParts) {
  IntervalTable better = known;
  better.classes["dense hopper"].factor = 1;
  const Interval interval = interval_around(1, expected, nemo, better);
  EXPECT_NEAR(width(interval), 0.05, 1e-12);
  EXPECT_EQ(interval.share_of(ErrorPart::unknown), 0);
}

TEST(StepInterval, WhatWasNeverMeasuredWidensIt) {
  StepClass unseen = nemo;
  unseen.gpu = "rubin";
  const Interval gpu = interval_around(1, expected, unseen, known);
  EXPECT_FALSE(gpu.seen_gpu);
  EXPECT_NEAR(width(gpu), std::hypot(2 * 0.05, nine_in_ten * 0.2), 1e-12);
  unseen.framework = "ours";
  const Interval both = interval_around(1, expected, unseen, known);
  EXPECT_FALSE(both.seen_framework);
  EXPECT_NEAR(width(both), std::sqrt(std::pow(2 * 0.05, 2) + std::pow(nine_in_ten, 2) * (0.04 + 0.01)), 1e-12);
}

}  // namespace
}  // namespace tandem::studies::step_interval_test
