#include "sim/blame.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/simulate.h"
#include "tests/runtime/random_dag.h"
#include "tests/runtime/small_dag.h"

namespace tandem::sim::blame_test {
namespace {

constexpr Seconds ns = 1e-9;
constexpr double rounding = 1e-9;

std::vector<std::string> names_of(const std::vector<Speedup>& speedups) {
  std::vector<std::string> names;
  for (const Speedup& speedup : speedups) names.push_back(std::string(speedup.group()) + " " + speedup.name());
  return names;
}

std::vector<std::string> candidates_of(const Dag& dag, const BlameEffort& effort = {}) {
  return names_of(blame_candidates(dag, simulate(dag).timeline, effort));
}

TEST(Blame, RanksWhatASpeedupGains) {
  // 6 us of kernels hide 5 us of a transfer of 9 us; after both, 1 us of kernels.
  SmallDag small;
  const LinkId link = small.link(1e9);
  const RankIndex rank = small.rank();
  const TaskId sent = small.flow(9'000, {{link, 1}});
  small.kernel(rank, 6'000);
  small.depend(sent, small.kernel(rank, 1'000));
  const Dag dag = small.finish();
  const Timeline timeline = simulate(dag).timeline;
  const std::vector<Speedup> speedups{{OpKind::fill, 1.25}, {Axis::dp, 1.25}, {Tier::nvlink, 1.25}, {Tier::nic, 1.25}};
  const std::vector<Blame> blamed = blame(dag, timeline, speedups, makespans(dag, speedups, 2));
  ASSERT_EQ(blamed.size(), 4U);
  for (std::size_t i : {0U, 1U}) {
    EXPECT_NEAR(blamed[i].gained, 1'800 * ns, rounding * ns);
    EXPECT_NEAR(blamed[i].step_time, 8'200 * ns, rounding * ns);
  }
  EXPECT_EQ(blamed[2].speedup.name(), "fill");
  EXPECT_NEAR(blamed[2].gained, 200 * ns, rounding * ns);
  EXPECT_EQ(blamed[3].speedup.name(), "nic");
  EXPECT_EQ(blamed[3].gained, 0);
}

TEST(Blame, IsTheSameWhateverRunsAtATime) {
  const Dag dag = random_dag(3);
  const Timeline timeline = simulate(dag).timeline;
  const std::vector<Speedup> speedups = blame_candidates(dag, timeline);
  ASSERT_GE(speedups.size(), 3U);
  const std::vector<Seconds> one = makespans(dag, speedups, 1), three = makespans(dag, speedups, 3),
                             all = makespans(dag, speedups, 99);
  EXPECT_EQ(one, three);
  EXPECT_EQ(one, all);
  EXPECT_TRUE(makespans(dag, {}, 2).empty());
}

// A process simulates several, on the network of the first; where they widen links, on its own.
TEST(Blame, IsThatOfEachSpeedupByItself) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const Dag dag = random_dag(seed);
    std::vector<Speedup> speedups = blame_candidates(dag, simulate(dag).timeline);
    speedups.emplace_back();
    const std::vector<Seconds> together = makespans(dag, speedups, 2);
    for (std::size_t i = 0; i < speedups.size(); ++i) {
      const Seconds alone = simulate(dag, Collectives::fluid, speedups[i]).timeline.makespan();
      EXPECT_NEAR(together[i], alone, 1e-12 * alone) << "seed " << seed << ": " << speedups[i].name();
    }
  }
}

TEST(Blame, SaysWhatWentWrongInASimulation) {
  Dag dag = random_dag(3);
  dag.devices[0].memory_bandwidth = dag.devices[1].memory_bandwidth = 0;
  const std::vector<Speedup> speedups(5, Speedup{OpKind::scale, 1.1});
  EXPECT_THROW(makespans(dag, speedups, 2), std::runtime_error);
}

TEST(BlameCandidates, AreWhatTakesTimeTheMostFirst) {
  // A rank fills for 9.97 us and scales for 20 ns, 0.2 % of the step; the flow takes 1 us over one tier.
  SmallDag small;
  const LinkId used = small.link(1e9), crossed = small.link(4e9);
  const RankIndex rank = small.rank();
  small.kernel(rank, 9'970);
  small.flow(1'000, {{used, 1}, {crossed, 1}});
  Dag dag = small.finish();
  dag.links[crossed].tier = Tier::nic;
  EXPECT_EQ(candidates_of(dag), (std::vector<std::string>{"kernel fill", "axis dp", "tier nvlink", "tier nic"}));
  EXPECT_EQ(candidates_of(dag, {.most = 2}), (std::vector<std::string>{"kernel fill", "axis dp"}));
}

TEST(BlameCandidates, LeaveOutKernelsOfNoWeight) {
  // In the mean over 1 + 3 ranks.
  for (const auto& [nanoseconds, expected] : {std::pair{19, 0U}, std::pair{21, 1U}}) {
    SmallDag small;
    const LinkId link = small.link(1e9);
    const RankIndex rank = small.rank();
    small.kernel(rank, nanoseconds);
    small.flow(1'000, {{link, 1}});
    Dag dag = small.finish();
    dag.ranks[1].count = 3;
    EXPECT_EQ(std::ranges::count(candidates_of(dag), "kernel fill"), expected);
  }
}

TEST(BlameCandidates, NameTheSlowestOfSeveralStages) {
  SmallDag small;
  for (const std::int64_t duration : {500, 900, 700}) small.kernel(small.rank(), duration);
  Dag dag = small.finish();
  EXPECT_EQ(candidates_of(dag), (std::vector<std::string>{"kernel fill"}));  // one stage
  for (std::int32_t stage = 0; stage < 3; ++stage) dag.ranks[static_cast<std::size_t>(stage)].pp = stage;
  EXPECT_EQ(candidates_of(dag), (std::vector<std::string>{"stage stage 1", "kernel fill"}));
}

TEST(BlameCandidates, AreFewerForLargerDags) {
  const Dag dag = random_dag(3);
  const std::size_t all = candidates_of(dag).size();
  EXPECT_EQ(candidates_of(dag, {.tasks = 2 * dag.tasks.size(), .fewest = 1}).size(), 2U);
  EXPECT_EQ(candidates_of(dag, {.tasks = 1, .fewest = 3}).size(), 3U);
  EXPECT_EQ(candidates_of(dag, {.tasks = 100 * dag.tasks.size()}).size(), all);
}

TEST(BlameCandidates, OfNothingAreNone) { EXPECT_TRUE(candidates_of(SmallDag().finish()).empty()); }

}  // namespace
}  // namespace tandem::sim::blame_test
