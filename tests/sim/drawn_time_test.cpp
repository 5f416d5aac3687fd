#include "sim/drawn_time.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "runtime/base/order_statistics.h"

namespace tandem::sim::drawn_time_test {
namespace {

constexpr int samples = 4000;

/// Values at evenly spread quantiles: `at` of a standard normal value.
std::vector<double> spread(const std::function<double(double z)>& at) {
  std::vector<double> values;
  for (int i = 0; i < samples; ++i) values.push_back(at(normal_quantile((i + 0.5) / samples)));
  return values;
}

double central_moment(const std::vector<double>& values, double mean, int power) {
  double sum = 0;
  for (const double value : values) sum += std::pow(value - mean, power);
  return sum / static_cast<double>(values.size());
}

TEST(DrawnTime, EqualTimesAreAConstant) {
  const std::vector<double> times(5, 0.3);
  const DrawnTime drawn(times);
  EXPECT_EQ(drawn.mean(), 0.3);
  EXPECT_EQ(drawn.at(-3), 0.3);
  EXPECT_EQ(drawn.at(3), 0.3);
}

TEST(DrawnTime, HasTheMomentsOfWhatWasDrawn) {
  // A lognormal; a moved one; a value that is nearly normal.
  const std::function<double(double)> shapes[] = {[](double z) { return std::exp(0.2 * z); },
                                                  [](double z) { return 10 + std::exp(0.5 * z); },
                                                  [](double z) { return 1 + 1e-3 * z; }};
  for (const auto& shape : shapes) {
    const std::vector<double> times = spread(shape);
    const DrawnTime drawn(times);
    const std::vector<double> again = spread([&](double z) { return drawn.at(z); });
    const double deviation = std::sqrt(central_moment(times, drawn.mean(), 2));
    EXPECT_NEAR(central_moment(again, drawn.mean(), 1), 0, 0.01 * deviation);
    EXPECT_NEAR(std::sqrt(central_moment(again, drawn.mean(), 2)), deviation, 0.02 * deviation);
    for (const double z : {-2.0, 0.0, 2.0, 3.0}) EXPECT_NEAR(drawn.at(z), shape(z), 0.15 * deviation) << z;
  }
}

// The largest of 64 normal values is skewed to the right: what one in a thousand of these exceeds, a normal of their mean and
// deviation misses by half a deviation.
TEST(DrawnTime, TellsTheTailOfTheLatestOfMany) {
  const auto largest_of_64 = [](double z) { return normal_quantile(std::pow(normal_share_below(z), 1.0 / 64)); };
  const DrawnTime drawn(spread([&](double z) { return 100 + largest_of_64(z); }));
  const double tail = normal_quantile(1 - 1e-3);
  const double exact = 100 + largest_of_64(tail);
  EXPECT_NEAR(drawn.at(tail), exact, 0.1 * drawn.deviation());
  EXPECT_GT(exact - (drawn.mean() + tail * drawn.deviation()), 0.5 * drawn.deviation());
}

TEST(DrawnTime, IsPositive) {
  // Skewed to the left, and widely spread.
  for (const std::vector<double>& times : {std::vector<double>{1, 8, 9, 9, 10}, {1e-6, 1, 1, 1}, {0.1, 5}}) {
    const DrawnTime drawn(times);
    for (double z = -8; z <= 8; z += 0.5) {
      EXPECT_GT(drawn.at(z), -1e-12);
      EXPECT_GT(drawn.at(z + 0.5), drawn.at(z));
    }
  }
}

}  // namespace
}  // namespace tandem::sim::drawn_time_test
