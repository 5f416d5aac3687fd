// Random numbers by counter: the published values of the generator, and the distributions drawn from them.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/campaign/counter_random.h"

namespace tandem::sim::campaign_random_test {
namespace {

using Words = std::array<std::uint32_t, 4>;

// Known answers of the authors' library Random123 1.09 (tests/kat_vectors, philox4x32 with 10 rounds).
TEST(CampaignRandom, PhiloxHasItsPublishedValues) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// Mean and variance of n draws lie within five standard errors of the distribution's.
TEST(CampaignRandom, DrawsHaveTheirMomentsAndStreamsNothingInCommon) {
  constexpr int n = 100'000;
  constexpr double five = 5;
  CounterRandom uniform(7, 0), exponential(7, 1), normal(7, 2), other(8, 0);
  double sum = 0, product = 0, times = 0, normals = 0, squares = 0;
  for (int i = 0; i < n; ++i) {
    const double u = uniform.uniform();
    ASSERT_GT(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    product += (u - 0.5) * (other.uniform() - 0.5);
    times += exponential.exponential(0.25);
    const double z = normal.normal();
    normals += z;
    squares += z * z;
  }
  const double error = five / std::sqrt(n);
  EXPECT_NEAR(sum / n, 0.5, error * std::sqrt(1 / 12.0));
  EXPECT_NEAR(product / n, 0, error / 12);
  EXPECT_NEAR(times / n, 4, error * 4);
  EXPECT_NEAR(normals / n, 0, error);
  EXPECT_NEAR(squares / n, 1, error * std::sqrt(2.0));
  EXPECT_EQ(uniform.exponential(0), std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace tandem::sim::campaign_random_test
