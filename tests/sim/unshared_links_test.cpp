#include "sim/unshared_links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "sim/simulate.h"
#include "tests/runtime/small_dag.h"

namespace tandem::sim::unshared_links_test {
namespace {

bool are_unshared(const Dag& dag, TaskId flow) {
  CollectiveCosts costs(dag);
  return UnsharedLinks(dag, costs).hold(dag.communicator_of(dag.tasks[flow]).layout.paths.front());
}

TEST(UnsharedLinks, AreThoseOfOneStream) {
  SmallDag small;
  const LinkId own = small.link(1e9), of_streams = small.link(1e9), of_ranks = small.link(1e9);
  const RankIndex rank = small.rank();
  const auto over = [&](std::vector<Crossing> crossings) {
    return small.communicator(2, {.paths = {{.crossings = std::move(crossings)}}});
  };
  const TaskId first = small.all_reduce(rank, over({{own, 1}}), 1'000);
  const TaskId second = small.all_reduce(rank, over({{own, 3}}), 1'000);
  const TaskId beside = small.all_reduce(rank, over({{of_streams, 1}}), 1'000);
  const TaskId other_stream = small.all_reduce(rank, over({{of_streams, 1}}), 1'000, Stream::tp);
  const TaskId here = small.flow(1'000, {{of_ranks, 1}}), there = small.flow(1'000, {{of_ranks, 1}});
  const TaskId both = small.all_reduce(rank, over({{own, 1}, {of_ranks, 1}}), 1'000);
  const Dag dag = small.finish();
  for (const TaskId flow : {first, second}) EXPECT_TRUE(are_unshared(dag, flow)) << flow;
  for (const TaskId flow : {beside, other_stream, here, there, both}) EXPECT_FALSE(are_unshared(dag, flow)) << flow;
}

/// Ranks that compute and send at random times, some over links of their own and some over one of all; at the end, if asked for,
/// one flow over every link, beside which none is unshared.
Dag random_flows(std::uint32_t seed, bool all_shared) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t n) { return random() % n; };
  SmallDag small;
  const LinkId of_all = small.link(1e9);
  std::vector<Crossing> every{{of_all, 1}};
  std::vector<TaskId> tasks;
  for (int r = 0; r < 6; ++r) {
    const RankIndex rank = small.rank();
    const LinkId own = small.link(1e9);
    every.push_back({own, 1});
    const auto over = [&](LinkId link, std::uint32_t times) {
      return small.communicator(2, {.intra_latency = 1e-6, .paths = {{.crossings = {{link, times}}}}});
    };
    const std::vector<CommunicatorId> communicators{over(own, 1), over(own, 3), over(of_all, 1)};
    for (int step = 0; step < 40; ++step) {
      const TaskId kernel = small.kernel(rank, 1 + below(20'000));
      if (below(2) == 0) continue;
      const TaskId sent = small.all_reduce(rank, communicators[below(3)], 1'000 + below(30'000));
      small.depend(kernel, sent);
      tasks.push_back(sent);
      if (below(3) == 0) {
        tasks.push_back(small.kernel(rank, 1 + below(1'000)));
        small.depend(sent, tasks.back());
      }
    }
  }
  if (all_shared) {
    const TaskId last = small.flow(1'000, every);
    for (const TaskId task : tasks) small.depend(task, last);
  }
  return small.finish();
}

TEST(UnsharedLinks, HoldFlowsThatTakeAsLongOnTheNetwork) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    const Dag dag = random_flows(seed, false);
    const Timeline alone = simulate(dag).timeline, on_network = simulate(random_flows(seed, true)).timeline;
    for (TaskId id = 0; id < dag.tasks.size(); ++id) {
      EXPECT_NEAR(alone.start[id], on_network.start[id], 1e-10) << seed;
      EXPECT_NEAR(alone.end[id], on_network.end[id], 1e-10) << seed;
    }
  }
}

/// Of flows over links of their own, on some ranks at random times. SimGrid's sums of dates leave a third of them off by a
/// rounding.
TEST(UnsharedLinks, CarryAFlowInExactlyItsLatencyAndItsBytesAtTheirRate) {
  std::mt19937 random(20261126);
  const auto below = [&](std::uint32_t n) { return static_cast<std::int64_t>(random() % n); };
  SmallDag small;
  std::vector<TaskId> flows;
  for (int r = 0; r < 4; ++r) {
    const RankIndex rank = small.rank();
    const CommunicatorId own =
        small.communicator(2, {.intra_latency = 3e-6, .paths = {{.crossings = {{small.link(7e9), 3}, {small.link(3e9), 1}}}}});
    for (int step = 0; step < 2'000; ++step) {
      const TaskId kernel = small.kernel(rank, 1 + below(10'000'000));
      flows.push_back(small.all_reduce(rank, own, 1'000 + below(30'000'000)));
      small.depend(kernel, flows.back());
      small.depend(flows.back(), small.kernel(rank, 1 + below(1'000)));
    }
  }
  const Dag dag = small.finish();
  const Timeline timeline = simulate(dag).timeline;
  CollectiveCosts costs(dag);
  for (const TaskId flow : flows) {
    const Layout& layout = dag.communicator_of(dag.tasks[flow]).layout;
    EXPECT_EQ(timeline.end[flow], timeline.start[flow] + uncontended_time(costs.of(dag.tasks[flow]), layout, dag.links));
  }
}

}  // namespace
}  // namespace tandem::sim::unshared_links_test
