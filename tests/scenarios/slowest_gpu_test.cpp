#include "scenarios/mesh/slowest_gpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tandem::scenarios::slowest_gpu_test {
namespace {

TEST(SlowestGpu, OneOrEqualOnesAreNotSlower) {
  EXPECT_EQ(slowest_of(1, 0.02), 1);
  EXPECT_EQ(slowest_of(10'000, 0), 1);
}

// The expected largest of two standard normal values is 1 / sqrt(pi).
TEST(SlowestGpu, OfTwoIsTheClosedForm) { EXPECT_NEAR((1 - slowest_of(2, 0.02)) / 0.02, 0.5642, 0.03); }

TEST(SlowestGpu, IsTheMeanOfManyDraws) {
  std::mt19937 random(3);
  for (const std::size_t gpus : {8, 64, 1000}) {
    constexpr double spread = 0.03;
    constexpr int draws = 2000;
    std::normal_distribution<double> speed(1, spread);
    double sum = 0;
    for (int draw = 0; draw < draws; ++draw) {
      double slowest = 2;
      for (std::size_t gpu = 0; gpu < gpus; ++gpu) slowest = std::min(slowest, speed(random));
      sum += slowest;
    }
    EXPECT_NEAR(slowest_of(gpus, spread), sum / draws, 0.001) << gpus;  // the mean's own error: below 0.0005
  }
}

}  // namespace
}  // namespace tandem::scenarios::slowest_gpu_test
