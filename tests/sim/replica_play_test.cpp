// Replicas that wait for each other, or do not: closed forms, order statistics, conservation.

#include "sim/replica_play.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "sim/random_numbers.h"

namespace tandem::sim::replica_play_test {
namespace {

constexpr Seconds step = 1, exchange = 0.125;

/// The exchange that every replica has.
std::function<Seconds(std::size_t)> each(Seconds time) {
  return [time](std::size_t) { return time; };
}

Replicas equal(std::size_t count) {
  return {.count = count, .step = [](std::size_t, std::uint64_t) { return step; }, .exchange = each(exchange)};
}

/// Replica 0 has this share of the others' speed.
Replicas one_slow(std::size_t count, double speed) {
  return {.count = count,
          .step = [speed](std::size_t replica, std::uint64_t) { return replica == 0 ? step / speed : step; },
          .exchange = each(exchange)};
}

double uniform(std::uint64_t seed, std::size_t replica, std::uint64_t number) {
  return RandomKey{seed, replica, number}.uniform();
}

/// Exponential of mean 1 after a fixed part, without exchange.
Replicas exponential(std::size_t count, Seconds fixed, std::uint64_t seed) {
  return {.count = count,
          .step = [=](std::size_t replica, std::uint64_t number) { return fixed - std::log(uniform(seed, replica, number)); },
          .exchange = each(0)};
}

Seconds time_of_update(const ReplicaPlay& play) { return play.time / static_cast<double>(play.updates); }
double rate(const ReplicaPlay& play) { return static_cast<double>(play.applied) / play.time; }

void expect_conserved(const ReplicaPlay& play) {
  EXPECT_EQ(play.in_flight_before + play.begun, play.applied + play.dropped + play.in_flight_after);
  std::uint64_t told = 0;
  for (const auto& [updates, gradients] : play.staleness) told += gradients;
  EXPECT_EQ(told, play.applied);
}

TEST(ReplicaPlay, EqualReplicasTakeTheSynchronousTimeWhateverThePolicy) {
  constexpr std::size_t count = 6;
  constexpr PlayLength length{.warm_up = 3, .counted = 20};
  constexpr double batches = 20;
  const ReplicaPlay synchronous = play_rounds(equal(count), {.needed = count}, length);
  EXPECT_DOUBLE_EQ(synchronous.time, batches * (step + exchange));
  EXPECT_EQ(synchronous.applied, 20 * count);
  for (const Late late : {Late::finishes, Late::abandons}) {
    const ReplicaPlay backup = play_rounds(equal(count), {.needed = 4, .late = late}, length);
    EXPECT_DOUBLE_EQ(backup.time, synchronous.time);
    EXPECT_EQ(backup.applied, 20U * 4);
    EXPECT_EQ(backup.dropped, 20U * 2);  // a third of them comes no sooner than the others, and no later
  }
  for (const std::uint64_t lead : {std::uint64_t{1}, std::uint64_t{4}, any_lead}) {
    const ReplicaPlay free = play_freely(equal(count), lead, length);
    EXPECT_DOUBLE_EQ(free.time, synchronous.time);
    EXPECT_EQ(free.applied, synchronous.applied);
    EXPECT_EQ(free.waited, 0);
    EXPECT_EQ(free.staleness, (std::map<std::uint64_t, std::uint64_t>{{count - 1, 20 * count}}));
  }
}

TEST(ReplicaPlay, OneSlowReplicaSlowsTheSynchronousStepAlone) {
  constexpr std::size_t count = 8;
  for (const double speed : {0.9, 0.5, 0.3}) {
    const PlayLength length{.warm_up = 400, .counted = 400};
    const Replicas replicas = one_slow(count, speed);
    const ReplicaPlay synchronous = play_rounds(replicas, {.needed = count}, length);
    EXPECT_NEAR(time_of_update(synchronous), step / speed + exchange, 1e-9);
    EXPECT_NEAR(synchronous.waited, 400 * (count - 1) * (step / speed - step), 1e-6);

    for (const Late late : {Late::finishes, Late::abandons}) {
      const ReplicaPlay backup = play_rounds(replicas, {.needed = count - 1, .late = late}, length);
      EXPECT_NEAR(time_of_update(backup), step + exchange, 1e-9);
      EXPECT_EQ(backup.applied, 400 * (count - 1));
      EXPECT_NEAR(backup.waited, 0, 1e-9);
      expect_conserved(backup);
    }
    const double slow_rate = 1 / (step / speed + exchange), sum = (count - 1) / (step + exchange) + slow_rate;
    const ReplicaPlay asynchronous = play_freely(replicas, any_lead, length);
    EXPECT_NEAR(rate(asynchronous), sum, 0.01 * sum);
    EXPECT_EQ(asynchronous.waited, 0);
    for (const std::uint64_t lead : {1, 3, 10}) {  // in the long run, that is after lead / (1 - speed) steps
      const ReplicaPlay stale = play_freely(replicas, lead, length);
      EXPECT_NEAR(rate(stale), count * slow_rate, 0.01 * sum) << lead;
      EXPECT_EQ(stale.most_ahead, lead);
      expect_conserved(stale);
    }
  }
}

// The exchange of a slow replica hides behind its backward: it counts where that replica is waited for.
TEST(ReplicaPlay, RoundsPayTheExchangeOfTheReplicaThatClosesThem) {
  Replicas replicas = one_slow(4, 0.5);
  replicas.exchange = [](std::size_t replica) { return replica == 0 ? 0.25 * exchange : exchange; };
  constexpr PlayLength length{.warm_up = 40, .counted = 400};
  const Seconds slow = step / 0.5 + 0.25 * exchange;
  EXPECT_NEAR(time_of_update(play_rounds(replicas, {.needed = 4}, length)), slow, 1e-9);
  EXPECT_NEAR(time_of_update(play_rounds(replicas, {.needed = 3}, length)), step + exchange, 1e-9);
  EXPECT_NEAR(time_of_update(play_freely(replicas, 2, length)), slow / 4, 0.01 * slow / 4);
}

// Late workers that stop let every round begin with everyone: its time is the k-th smallest of n values. Of exponential ones
// that is 1/n + 1/(n-1) + ... + 1/(n-k+1) in the mean, with the squares of these as variance (Renyi 1953). The mean of so many
// rounds is off by four of its standard errors at most.
TEST(ReplicaPlay, BackupWorkersAreOrderStatistics) {
  constexpr std::size_t count = 20;
  constexpr std::uint64_t rounds = 4000;
  for (const std::size_t needed : {20, 19, 16, 10, 1}) {
    double mean = 2, variance = 0;
    for (std::size_t i = 0; i < needed; ++i) {
      const double share = 1 / static_cast<double>(count - i);
      mean += share;
      variance += share * share;
    }
    const ReplicaPlay play =
        play_rounds(exponential(count, 2, 7), {.needed = needed, .late = Late::abandons}, {.warm_up = 0, .counted = rounds});
    EXPECT_NEAR(time_of_update(play), mean, 4 * std::sqrt(variance / rounds)) << needed;
    EXPECT_DOUBLE_EQ(play.dropped_share(), static_cast<double>(count - needed) / count);
    expect_conserved(play);
  }
}

// Each replica is twice as slow in a step with probability p. All n are needed: 1 + P(one is slow); n - 1: 1 + P(two are).
TEST(ReplicaPlay, BackupWorkersAgainstTwoPoints) {
  constexpr std::size_t count = 10;
  constexpr std::uint64_t rounds = 10'000;
  constexpr double p = 0.05;
  const Replicas replicas{
      .count = count,
      .step = [](std::size_t replica, std::uint64_t number) { return uniform(3, replica, number) < p ? 2.0 : 1.0; },
      .exchange = each(0)};
  const double none = std::pow(1 - p, count), one = count * p * std::pow(1 - p, count - 1);
  const auto expect_mean = [&](std::size_t needed, double probability) {
    const ReplicaPlay play = play_rounds(replicas, {.needed = needed, .late = Late::abandons}, {.warm_up = 0, .counted = rounds});
    EXPECT_NEAR(time_of_update(play), 1 + probability, 4 * std::sqrt(probability * (1 - probability) / rounds));
  };
  expect_mean(count, 1 - none);
  expect_mean(count - 1, 1 - none - one);
}

// Who finishes late begins the next gradient late, so it takes at least as long as when it stops; and no longer than without
// backup workers, for nobody waits for more.
TEST(ReplicaPlay, LateWorkersThatFinishStayBehind) {
  constexpr PlayLength length{.warm_up = 100, .counted = 2000};
  const Replicas replicas = exponential(20, 2, 7);
  const Seconds all = time_of_update(play_rounds(replicas, {.needed = 20}, length));
  for (const std::size_t needed : {19, 16, 12}) {
    const ReplicaPlay stops = play_rounds(replicas, {.needed = needed, .late = Late::abandons}, length);
    const ReplicaPlay finishes = play_rounds(replicas, {.needed = needed}, length);
    EXPECT_LT(time_of_update(stops), time_of_update(finishes));
    EXPECT_LT(time_of_update(finishes), all);
    EXPECT_GT(finishes.in_flight_before + finishes.in_flight_after, 0U);
    expect_conserved(finishes);
  }
}

TEST(ReplicaPlay, MeanStalenessIsTheNumberOfTheOthers) {
  for (const std::size_t count : {2, 5, 40}) {
    Replicas replicas = exponential(count, 0.25, count);
    replicas.exchange = each(exchange);
    const ReplicaPlay play = play_freely(replicas, any_lead, {.warm_up = 50, .counted = 2000});
    EXPECT_NEAR(play.mean_staleness(), static_cast<double>(count - 1), 0.01 * static_cast<double>(count));
    EXPECT_GT(play.most_stale(), count - 1);
    expect_conserved(play);
  }
}

TEST(ReplicaPlay, NobodyIsFurtherAheadThanTheBound) {
  constexpr std::size_t count = 12;
  constexpr PlayLength length{.warm_up = 20, .counted = 500};
  const Replicas replicas = exponential(count, 0.5, 11);
  Seconds before = time_of_update(play_rounds(replicas, {.needed = count}, length)) / count;
  for (const std::uint64_t lead : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{8}, any_lead}) {
    const ReplicaPlay play = play_freely(replicas, lead, length);
    EXPECT_LE(play.most_ahead, lead);
    EXPECT_LE(time_of_update(play), before * (1 + 1e-9)) << lead;  // a looser bound takes no longer
    before = time_of_update(play);
    expect_conserved(play);
  }
}

// Parameter servers that need s for an update have at most 1 / s of them in a second; equal replicas send count / (step +
// exchange).
TEST(ReplicaPlay, ServersLimitUpdates) {
  for (const std::size_t count : {1, 4, 9, 16, 64}) {
    Replicas replicas = equal(count);
    replicas.service = 0.1;
    const ReplicaPlay play = play_freely(replicas, any_lead, {.warm_up = 50, .counted = 50});
    const double unhindered = static_cast<double>(count) / (step + exchange);
    EXPECT_NEAR(rate(play), std::min(unhindered, 1 / replicas.service), 1e-9) << count;
    EXPECT_EQ(play.mean_staleness(), static_cast<double>(count - 1));
    expect_conserved(play);
  }
  Replicas alone = equal(1);
  alone.service = 4 * exchange;  // nobody else queues
  EXPECT_NEAR(time_of_update(play_freely(alone, any_lead, {.warm_up = 0, .counted = 9})), step + alone.service, 1e-12);
}

// With no lead every replica begins its step when the slowest has ended its own: the rounds of a synchronous step, one by one.
TEST(ReplicaPlay, NoLeadIsTheSynchronousStep) {
  constexpr PlayLength length{.warm_up = 7, .counted = 300};
  Replicas replicas = exponential(9, 1, 5);
  replicas.exchange = each(exchange);
  const ReplicaPlay synchronous = play_rounds(replicas, {.needed = 9}, length), stale = play_freely(replicas, 0, length);
  EXPECT_NEAR(stale.time, synchronous.time, 1e-9 * synchronous.time);
  EXPECT_EQ(stale.applied, synchronous.applied);
  EXPECT_NEAR(stale.waited, synchronous.waited, 1e-9 * synchronous.waited);
}

// Replicas that never wait spend all their time on steps and exchanges; those of a synchronous step wait the rest.
TEST(ReplicaPlay, TimeIsSpentOnStepsExchangesAndWaiting) {
  constexpr std::size_t count = 16;
  constexpr std::uint64_t rounds = 200;
  Replicas replicas = exponential(count, 3, 2);
  replicas.exchange = each(exchange);
  const ReplicaPlay play = play_rounds(replicas, {.needed = count}, {.warm_up = 0, .counted = rounds});
  Seconds worked = 0;
  for (std::size_t replica = 0; replica < count; ++replica)
    for (std::uint64_t number = 0; number < rounds; ++number) worked += replicas.step(replica, number);
  EXPECT_NEAR(worked + play.waited + rounds * count * exchange, count * play.time, 1e-6);
}

// Local SGD: the last of n sums of h exponential steps. One round of h steps waits for less than h rounds of one.
TEST(ReplicaPlay, SeveralStepsByThemselvesAverageOut) {
  constexpr std::size_t count = 16;
  const Replicas replicas = exponential(count, 1, 4);
  const ReplicaPlay each = play_rounds(replicas, {.needed = count}, {.warm_up = 0, .counted = 800});
  const ReplicaPlay every_eighth = play_rounds(replicas, {.needed = count, .every = 8}, {.warm_up = 0, .counted = 100});
  EXPECT_EQ(every_eighth.applied, each.applied);
  EXPECT_LT(every_eighth.time, 0.7 * each.time);
  Seconds last_of_sums = 0;
  for (std::uint64_t round = 0; round < 100; ++round) {
    Seconds longest = 0;
    for (std::size_t replica = 0; replica < count; ++replica) {
      Seconds sum = 0;
      for (std::uint64_t number = 8 * round; number < 8 * (round + 1); ++number) sum += replicas.step(replica, number);
      longest = std::max(longest, sum);
    }
    last_of_sums += longest;
  }
  EXPECT_NEAR(every_eighth.time, last_of_sums, 1e-9 * last_of_sums);
}

}  // namespace
}  // namespace tandem::sim::replica_play_test
