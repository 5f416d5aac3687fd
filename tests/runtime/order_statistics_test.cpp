#include "runtime/base/order_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace tandem::order_statistics_test {
namespace {

// n = 2 and 3 in closed form; larger ones from Teichroew 1956 and Harter 1961 (Biometrika 48).
TEST(OrderStatistics, LargestOfNormalValues) {
  EXPECT_EQ(largest_normal(1).mean, 0);
  EXPECT_EQ(largest_normal(1).deviation, 1);
  EXPECT_NEAR(largest_normal(2).mean, std::numbers::inv_sqrtpi, 1e-12);
  EXPECT_NEAR(largest_normal(2).deviation, std::sqrt(1 - 1 / std::numbers::pi), 1e-12);
  EXPECT_NEAR(largest_normal(3).mean, 1.5 * std::numbers::inv_sqrtpi, 1e-12);
  EXPECT_NEAR(largest_normal(8).mean, 1.42360, 5e-6);
  EXPECT_NEAR(largest_normal(100).mean, 2.50759, 5e-6);
}

// Gnedenko: it grows as sqrt(2 log n), from below.
TEST(OrderStatistics, GrowsSlowly) {
  double before = 0;
  for (const std::size_t n : {std::size_t{10}, std::size_t{1'000}, std::size_t{100'000}, std::size_t{10'000'000}}) {
    const double mean = largest_normal(n).mean;
    EXPECT_GT(mean, before);
    EXPECT_LT(mean, std::sqrt(2 * std::log(static_cast<double>(n))));
    before = mean;
  }
}

TEST(OrderStatistics, QuantilesAreInverse) {
  for (const double z : {-8.0, -2.5, 0.0, 0.3, 5.0}) EXPECT_NEAR(normal_quantile(normal_share_below(z)), z, 1e-6);
}

// Tippett's d2 for five samples: 2.326.
TEST(OrderStatistics, DeviationFromARange) { EXPECT_NEAR(deviation_of_range(2.326, 5), 1, 1e-4); }

}  // namespace
}  // namespace tandem::order_statistics_test
