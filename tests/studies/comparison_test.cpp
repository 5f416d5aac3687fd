// Simulated against measured: the parts add up to the whole, whatever the timelines.
#include "studies/crosscheck/comparison.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "studies/crosscheck/comparison_json.h"
#include "tests/runtime/random_dag.h"
#include "tests/runtime/small_dag.h"

namespace tandem::studies::comparison_test {
namespace {

Timeline random_timeline(const Dag& dag, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  Timeline timeline;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    timeline.start.push_back(uniform(random));
    timeline.end.push_back(timeline.start.back() + uniform(random));
  }
  return timeline;
}

Seconds sum_of_durations(const Timeline& timeline) {
  Seconds sum = 0;
  for (TaskId id = 0; id < timeline.start.size(); ++id) sum += timeline.duration(id);
  return sum;
}

TEST(Comparison, IsRefusedBeyondTheLargestErrorAndWithoutNumbers) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto of = [](Seconds simulated, Seconds measured) {
    Comparison comparison;
    comparison.step = {simulated, measured};
    return comparison;
  };
  EXPECT_NO_THROW(refuse_larger_error(of(1.05, 1), 0.1));
  EXPECT_NO_THROW(refuse_larger_error(of(0.95, 1), 0.1));
  EXPECT_THROW(refuse_larger_error(of(1.2, 1), 0.1), std::runtime_error);
  EXPECT_THROW(refuse_larger_error(of(0.8, 1), 0.1), std::runtime_error);
  for (const auto& broken : {of(nan, 1), of(1, nan), of(1, 0)})
    EXPECT_THROW(refuse_larger_error(broken, 0.1), std::runtime_error);
}

TEST(Comparison, IsRefusedForKindsThatAreOff) {
  const auto refusal = [](std::vector<KindComparison> kinds) {
    Comparison comparison;
    comparison.kinds = std::move(kinds);
    try {
      refuse_larger_kind_errors(comparison, 0.1);
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal({{"gemm", 1, {1.05, 1}, 0.9}, {"norm", 1, {0.95, 1}, 0.1}}), "");
  EXPECT_EQ(refusal({{"gemm", 1, {1, 1}, 0.995}, {"norm", 1, {3, 1}, 0.005}}), "") << "less than 1 % of the time";
  EXPECT_EQ(refusal({{"gemm", 1, {1, 1}, 0.5}, {"norm", 1, {1.5, 1}, 0.3}, {"adam", 1, {0.5, 1}, 0.2}}),
            "simulated kinds of tasks are off, more than --max-kind-error allows (10.0 %): norm by +50.0 %, adam by -50.0 %");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(refusal({{"gemm", 1, {nan, 1}, 1}}), "");
}

TEST(Comparison, PartsAddUpToTheWhole) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    Dag dag = random_dag(seed);
    for (Rank& rank : dag.ranks) rank.pp = 0;
    const Timeline simulated = random_timeline(dag, seed), measured = random_timeline(dag, seed + 100);
    const Comparison comparison = compare(dag, simulated, measured);
    std::size_t count = 0;
    SimulatedAndMeasured time;
    double share = 0;
    for (const KindComparison& kind : comparison.kinds) {
      count += kind.count;
      time.simulated += kind.time.simulated;
      time.measured += kind.time.measured;
      share += kind.share;
      EXPECT_NEAR(*kind.time.error(), kind.time.simulated / kind.time.measured - 1, 1e-12);
    }
    EXPECT_EQ(count, dag.tasks.size());
    EXPECT_NEAR(time.simulated, sum_of_durations(simulated), 1e-9);
    EXPECT_NEAR(time.measured, sum_of_durations(measured), 1e-9);
    EXPECT_NEAR(share, 1, 1e-9);
    EXPECT_EQ(comparison.step.simulated, simulated.makespan());
    EXPECT_EQ(comparison.step.measured, measured.makespan());
    std::size_t tasks = 0;
    for (const RankOrder& order : comparison.orders) tasks += order.tasks;
    EXPECT_EQ(tasks, dag.tasks.size());
    for (const StreamComparison& stream : comparison.streams) {
      EXPECT_LE(stream.simulated.covered, stream.simulated.busy);
      EXPECT_LE(stream.measured.covered, stream.measured.busy);
    }
  }
}

TEST(Comparison, WorstTasksAreTheWorst) {
  const Dag dag = random_dag(7);
  const Timeline simulated = random_timeline(dag, 1), measured = random_timeline(dag, 2);
  const Comparison comparison = compare(dag, simulated, measured);
  ASSERT_EQ(comparison.worst.size(), 10U);
  const auto difference = [&](TaskId id) { return std::abs(simulated.duration(id) - measured.duration(id)); };
  std::set<TaskId> named;
  Seconds least = 10;
  for (const TaskComparison& task : comparison.worst) {
    EXPECT_LE(difference(task.task), least);
    least = difference(task.task);
    named.insert(task.task);
    EXPECT_EQ(task.name, dag.name_of_task(task.task));
    EXPECT_EQ(task.rank, dag.ranks[dag.tasks[task.task].rank].world_rank);
  }
  for (TaskId id = 0; id < dag.tasks.size(); ++id) EXPECT_TRUE(named.contains(id) || difference(id) <= least);
}

TEST(Comparison, ATimelineAgainstItselfHasNoError) {
  const Dag dag = random_dag(3);
  const Timeline timeline = random_timeline(dag, 1);
  const Comparison comparison = compare(dag, timeline, timeline);
  EXPECT_TRUE(comparison.same_order());
  EXPECT_EQ(*comparison.step.error(), 0);
  for (const KindComparison& kind : comparison.kinds) EXPECT_EQ(*kind.time.error(), 0);
  EXPECT_EQ(comparison.memory.simulated, comparison.memory.executed);
  EXPECT_EQ(comparison.memory.measured, std::nullopt);
  EXPECT_EQ(compare(dag, timeline, timeline, {5, 9, 2}).memory.measured, 9);
}

TEST(Comparison, FindsAnotherOrder) {
  SmallDag small;
  const RankIndex rank = small.rank();
  small.kernel(rank, 1);
  small.kernel(rank, 1);
  const Dag dag = small.finish();
  const Comparison comparison = compare(dag, {{0, 1}, {1, 2}}, {{1, 0}, {2, 1}});
  EXPECT_FALSE(comparison.same_order());
  ASSERT_EQ(comparison.orders.size(), 1U);
  EXPECT_FALSE(comparison.orders.front().same);
}

TEST(Comparison, WhatTookNoTimeHasNoError) {
  SmallDag small;
  const RankIndex rank = small.rank();
  small.kernel(rank, 1);
  const Comparison comparison = compare(small.finish(), {{0}, {1}}, {{0}, {0}});
  EXPECT_EQ(comparison.kinds.at(0).time.error(), std::nullopt);
  EXPECT_EQ(comparison.kinds.at(0).share, 0);
  EXPECT_TRUE(comparison.streams.empty());
  const nlohmann::ordered_json json = to_json_object(comparison);
  EXPECT_TRUE(json["kinds"][0]["error"].is_null());
  EXPECT_TRUE(json["step"]["error"].is_null());
  EXPECT_TRUE(json["overlap"].empty());
}

}  // namespace
}  // namespace tandem::studies::comparison_test
