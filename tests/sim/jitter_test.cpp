#include "sim/jitter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "runtime/base/order_statistics.h"
#include "runtime/executor.h"
#include "sim/child_process.h"
#include "sim/simgrid_backend.h"
#include "tests/runtime/small_dag.h"

namespace tandem::sim::jitter_test {
namespace {

struct Moments {
  double mean = 0, deviation = 0;
};

Moments moments(const std::vector<Seconds>& values) {
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / (n - 1))};
}

/// `members` ranks, all or as one, each of which runs `kernels` of 1 us and then meets the others.
Dag one_meeting(std::uint32_t members, int kernels, bool folded) {
  SmallDag small;
  const CommunicatorId all = small.communicator(members, {});
  for (std::uint32_t r = 0; r < (folded ? 1 : members); ++r) {
    const RankIndex rank = small.rank();
    TaskId last = 0;
    for (int kernel = 0; kernel < kernels; ++kernel) last = small.kernel(rank, 1'000);
    small.depend(last, small.all_reduce(rank, all, 0));
  }
  Dag dag = small.finish();
  if (folded) dag.ranks.front().count = members;
  return dag;
}

// The sum of n kernels has mean n and variance n c^2; means of 1,000 draws are off by three of their standard errors at most.
TEST(Jitter, KernelsOfOneRankAddUp) {
  constexpr int kernels = 25, draws = 1'000;
  constexpr double c = 0.1;
  SmallDag small;
  const RankIndex rank = small.rank();
  for (int kernel = 0; kernel < kernels; ++kernel) small.kernel(rank, 1'000);
  const Moments found = moments(drawn_makespans(small.finish(), {.kernel = c}, {.seed = 1, .count = draws, .jobs = 2}));
  const double deviation = 1e-6 * c * std::sqrt(kernels);
  EXPECT_NEAR(found.mean, kernels * 1e-6, 3 * deviation / std::sqrt(draws));
  EXPECT_NEAR(found.deviation, deviation, 3 * deviation / std::sqrt(2.0 * draws));
}

// A rank's speed is the same for all its kernels: variance (n c)^2.
TEST(Jitter, SpeedsOfRanksDoNotAverageOut) {
  constexpr int kernels = 25, draws = 1'000;
  constexpr double c = 0.02;
  SmallDag small;
  const RankIndex rank = small.rank();
  for (int kernel = 0; kernel < kernels; ++kernel) small.kernel(rank, 1'000);
  const Moments found = moments(drawn_makespans(small.finish(), {.rank = c}, {.seed = 1, .count = draws, .jobs = 2}));
  const double deviation = 1e-6 * c * kernels;
  EXPECT_NEAR(found.mean, kernels * 1e-6, 3 * deviation / std::sqrt(draws));
  EXPECT_NEAR(found.deviation, deviation, 3 * deviation / std::sqrt(2.0 * draws));
}

struct Meeting {
  std::uint32_t members;
  Variation variation;
  bool folded;
};

class JitterOfMeetings : public testing::TestWithParam<Meeting> {};

// The last of n arrives when the largest of n values does, which are nearly normal here: 100 kernels of a small variation.
TEST_P(JitterOfMeetings, LastByOrderStatistics) {
  constexpr int kernels = 100, draws = 500;
  const auto& [members, variation, folded] = GetParam();
  const double deviation = 1e-6 * std::hypot(variation.kernel * std::sqrt(kernels), variation.rank * kernels);
  const LargestNormal expected = largest_normal(members);
  const Moments found =
      moments(drawn_makespans(one_meeting(members, kernels, folded), variation, {.seed = 1, .count = draws, .jobs = 2}));
  const double undisturbed = simulate(one_meeting(members, kernels, folded)).timeline.makespan();
  const double error = 3 / std::sqrt(draws);
  constexpr double skew = 0.02;  // of a lognormal distribution: the largest is so much larger than that of a normal one
  EXPECT_NEAR((found.mean - undisturbed) / deviation, expected.mean, error * expected.deviation + skew * expected.mean);
  EXPECT_NEAR(found.deviation / deviation, expected.deviation, expected.deviation * (error + 4 * skew));
}

constexpr Variation kernels{.kernel = 0.03}, speeds{.rank = 0.003}, both{.kernel = 0.03, .rank = 0.003};
INSTANTIATE_TEST_SUITE_P(Sizes, JitterOfMeetings,
                         testing::Values(Meeting{8, kernels, false}, Meeting{8, speeds, false}, Meeting{8, kernels, true},
                                         Meeting{8, speeds, true}, Meeting{8, both, true}, Meeting{64, kernels, true},
                                         Meeting{64, speeds, true}, Meeting{64, both, true}, Meeting{1024, kernels, true},
                                         Meeting{1024, speeds, true}, Meeting{1024, both, true}));

TEST(Jitter, NoneLeavesTheStepAsItIs) {
  const Dag dag = one_meeting(64, 10, true);
  const Seconds undisturbed = simulate(dag).timeline.makespan();
  for (const Seconds drawn : drawn_makespans(dag, {}, {.seed = 1, .count = 3, .jobs = 1})) EXPECT_EQ(drawn, undisturbed);
}

TEST(Jitter, IsTheSameHoweverManyAtOnce) {
  constexpr Variation all{.kernel = 0.1, .rank = 0.1, .communication = 0.1};
  const Dag dag = one_meeting(64, 10, true);
  const std::vector<Seconds> one = drawn_makespans(dag, all, {.seed = 7, .count = 9, .jobs = 1});
  EXPECT_EQ(one, drawn_makespans(dag, all, {.seed = 7, .count = 9, .jobs = 2}));
  EXPECT_NE(one, drawn_makespans(dag, all, {.seed = 8, .count = 9, .jobs = 2}));
  std::vector<Seconds> fewer = drawn_makespans(dag, all, {.seed = 7, .count = 4, .jobs = 3});
  EXPECT_TRUE(std::ranges::equal(fewer, std::span(one).first(4)));
}

// One network for several draws, whose clock goes on: beside a network of its own for each, roundings alone differ.
TEST(Jitter, DrawsOfOneProcessAreThoseOfMany) {
  SmallDag small;
  const LinkId link = small.link(1e9);
  std::vector<RankIndex> ranks{small.rank(), small.rank()};
  for (const RankIndex rank : ranks) small.depend(small.kernel(rank, 1'000), small.flow(1'000'000, {{link, 1}}));
  const Dag dag = small.finish();
  constexpr std::size_t draws = 6;
  SharedDoubles one(draws), many(draws);
  const auto draw = [&](std::size_t number, std::unique_ptr<FluidNetwork>& network) {
    const JitterDraw jitter({.kernel = 0.3, .communication = 0.3}, 1, number);
    SimGridBackend backend(Collectives::fluid, {}, jitter, nullptr, {.network = &network});
    return execute(dag, backend).makespan();
  };
  run_in_child([&] {
    std::unique_ptr<FluidNetwork> network;
    for (std::size_t number = 0; number < draws; ++number) one.values()[number] = draw(number, network);
  });
  run_in_children(draws, 2, [&](std::size_t number) {
    std::unique_ptr<FluidNetwork> network;
    many.values()[number] = draw(number, network);
  });
  for (std::size_t number = 0; number < draws; ++number) {
    EXPECT_GT(one.values()[number], 1e-3);
    EXPECT_NEAR(one.values()[number], many.values()[number], 1e-12);
  }
}

TEST(Jitter, NormalNumbersAreKnownToBeBelow) {
  constexpr int keys = 100'000;
  for (const double z : {-1.0, 0.0, 0.01, 1.0, 2.0, 3.0}) {
    int below = 0, known = 0;
    for (std::uint64_t i = 0; i < keys; ++i) {
      const RandomKey key{5, i};
      below += key.normal() < z ? 1 : 0;
      known += key.normal_is_below(z) ? 1 : 0;
      ASSERT_FALSE(key.normal_is_below(z) && key.normal() >= z) << z << ' ' << i;
    }
    EXPECT_LE(known, z > 0 ? below : 0);
    EXPECT_GE(known, z >= 2 ? 0.8 * below : z > 0 ? 0.49 * keys : 0);
  }
}

TEST(Jitter, PercentilesLieBetweenNeighbours) {
  const std::vector<Seconds> times{3, 1, 2, 5, 4};
  EXPECT_EQ(percentile(times, 0), 1);
  EXPECT_EQ(percentile(times, 0.5), 3);
  EXPECT_DOUBLE_EQ(percentile(times, 0.9), 4.6);
  EXPECT_EQ(percentile(times, 1), 5);
  EXPECT_EQ(percentile(std::vector<Seconds>{2}, 0.99), 2);
}

}  // namespace
}  // namespace tandem::sim::jitter_test
