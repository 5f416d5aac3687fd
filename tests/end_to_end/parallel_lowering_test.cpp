// The DAG of a step is the same to the last bit however many threads lower its ranks.
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>

#include "runtime/base/parallel.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/lowering/lower_rank.h"
#include "scenarios/mesh/world.h"
#include "scenarios/reading/load.h"
#include "tests/end_to_end/random_scenarios.h"
#include "tests/end_to_end/same_dag.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::parallel_lowering_test {
namespace {

class ParallelLowering : public testing::Test {
 protected:
  void TearDown() override { limit_threads(before_); }

  static Dag lowered_by(std::size_t threads, const Scenario& scenario, const World& world, const StepRange& steps = {}) {
    limit_threads(threads);
    return lower(scenario, world, steps);
  }

  static void expect_same_by_threads(const Scenario& scenario, const World& world, const StepRange& steps = {}) {
    const Dag one = lowered_by(1, scenario, world, steps);
    for (const std::size_t threads : {2, 5}) expect_same(one, lowered_by(threads, scenario, world, steps));
  }

 private:
  std::size_t before_ = most_threads();
};

TEST_F(ParallelLowering, OfRandomScenariosIsThatOfOneThread) {
  for (const bool folded : {true, false}) {
    for (const RandomScenario& drawn : random_scenarios(60, folded ? 1 : 1000, 1)) {
      SCOPED_TRACE(drawn.text());
      expect_same_by_threads(drawn.scenario, make_world(drawn.scenario, folded), scenarios::period_of(drawn.scenario));
      if (HasFailure()) return;
    }
  }
}

TEST_F(ParallelLowering, OfShippedScenariosIsThatOfOneThread) {
  for (const char* name : {"llama3-405b-16k", "deepseek-v3-2k", "llama3-8b-64-packed", "nemotron-3-nano-b300"}) {
    SCOPED_TRACE(name);
    const Scenario scenario = load_scenario(std::string(TANDEM_SOURCE_DIR "/scenarios/") + name + ".yaml", {});
    const auto few = static_cast<std::int32_t>(2 * scenario.parallelism.pp);
    expect_same_by_threads(scenario, make_world(scenario, true), {.micro_batches = few});
  }
}

TEST_F(ParallelLowering, LowersTwiceWhereActivationsAreOffloaded) {
  const Scenario scenario =
      tiny_cluster(words("cluster.host.link_GBps=50 cluster.host.memory_GBps=400 parallelism.pp=4 training.global_batch=8 "
                         "training.offload.activations=1"));
  const World world = make_world(scenario, false);
  const Dag dag = lowered_by(1, scenario, world);
  const auto to_host = [](const Task& task) { return task.stream == Stream::to_host; };
  ASSERT_TRUE(std::ranges::any_of(dag.tasks, to_host));
  expect_same_by_threads(scenario, world);
}

TEST_F(ParallelLowering, OfSomeRanksAloneIsThatOfOneThread) {
  const Scenario scenario = tiny_cluster(words("parallelism.tp=2 parallelism.pp=4 training.global_batch=8"));
  const World world = make_world(scenario, false);
  limit_threads(1);
  const Dag one = lower_alone(scenario, world, {6, 1, 3});
  EXPECT_EQ(one.tasks.front().rank, 6);
  limit_threads(3);
  expect_same(one, lower_alone(scenario, world, {6, 1, 3}));
}

/// Lowers ranks by `lower`, and returns what it throws.
std::string error_of(std::size_t threads, const std::function<void(DagBuilder&, RankIndex)>& lower) {
  limit_threads(threads);
  DagBuilder builder;
  std::vector<RankIndex> ranks(20);
  for (RankIndex& rank : ranks) rank = builder.add_rank({});
  builder.add_communicator({.name = "all", .members = {}, .layout = {}});
  try {
    scenarios::lower_each(builder, ranks, [&](DagBuilder& of_rank, RankIndex rank, bool /*declares_only*/) {
      lower(of_rank, rank);
      return std::size_t{0};
    });
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

void all_reduce(DagBuilder& builder, RankIndex rank, std::int64_t elements) {
  const BufferId data = builder.buffer(rank, BufferKind::communication, DType::f32, Shape(elements));
  builder.collective(OpKind::all_reduce, 0, {.name = "sum"}, data, data);
}

TEST_F(ParallelLowering, ThrowsWhatTheFirstRankThrows) {
  const auto throws_later_where_first = [](DagBuilder& builder, RankIndex rank) {
    all_reduce(builder, rank, 1);
    if (rank < 7) return;
    if (rank == 7) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    throw std::runtime_error("rank " + std::to_string(rank));
  };
  const auto disagrees_before_it_throws = [](DagBuilder& builder, RankIndex rank) {
    all_reduce(builder, rank, rank == 5 ? 2 : 1);
    if (rank == 5) throw std::runtime_error("later");
  };
  const auto throws_before_it_disagrees = [](DagBuilder& builder, RankIndex rank) {
    if (rank == 5) throw std::runtime_error("earlier");
    all_reduce(builder, rank, rank == 6 ? 2 : 1);
  };
  for (const std::size_t threads : {1, 2, 5}) {
    EXPECT_EQ(error_of(threads, throws_later_where_first), "rank 7");
    EXPECT_EQ(error_of(threads, disagrees_before_it_throws), "members of 'all' disagree on the size of a collective");
    EXPECT_EQ(error_of(threads, throws_before_it_disagrees), "earlier");
    EXPECT_EQ(error_of(threads, [](DagBuilder& builder, RankIndex rank) { all_reduce(builder, rank, 1); }), "");
  }
}

}  // namespace
}  // namespace tandem::studies::parallel_lowering_test
