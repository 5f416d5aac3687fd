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

/// ln(high / step time) over 1.645
double error_of(const StepResult& result) { return std::log(step_interval(result).high / result.step_time) / 1.645; }

TEST(StepInterval, OfProductsAloneIsTheirErrorAndTheFrameworks) {
  const StepResult result = of_products(2);
  EXPECT_NEAR(error_of(result), std::hypot(0.05, 0.06), 1e-12);
  const Interval interval = step_interval(result);
  EXPECT_NEAR(interval.low * interval.high, 2 * 2, 1e-12);
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

}  // namespace
}  // namespace tandem::studies::step_interval_test
