#include "sim/lone_flows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "sim/child_process.h"
#include "sim/fluid_network.h"
#include "sim/lane_dates.h"
#include "sim/simulate.h"
#include "tests/runtime/small_dag.h"

namespace tandem::sim::lone_flows_test {
namespace {

// Two flows of 1 GB at 1 GB/s, of which one begins at 0 and moves its first byte after a tenth of a second.
TEST(LoneFlows, GoOnInTheNetworkWithWhatIsLeft) {
  const std::vector<Crossing> both{{0, 1}, {1, 1}}, second{{1, 1}}, third{{2, 1}};
  const auto flow = [](TaskId task, const std::vector<Crossing>& crossings) {
    return LoneFlows::Flow{.task = task, .lane = task, .latency = 0.1, .bytes = 1e9, .crossings = crossings};
  };
  LoneFlows lone(3, 4);
  EXPECT_TRUE(lone.begin(flow(0, both), 1.1, 0));
  EXPECT_TRUE(lone.begin(flow(1, third), 1.1, 0.2));
  EXPECT_FALSE(lone.begin(flow(2, second), 1.1, 0.6));
  ASSERT_EQ(lone.met().size(), 1U);
  EXPECT_EQ(lone.met()[0].task, 0U);
  EXPECT_EQ(lone.met()[0].latency, 0);
  EXPECT_NEAR(lone.met()[0].bytes, 0.5e9, 1);
  lone.end(1);
  lone.end(0);
  EXPECT_FALSE(lone.begin(flow(3, second), 1.1, 1.6)) << "the one that it met is still there";
  EXPECT_TRUE(lone.met().empty());
  lone.end(2);
  lone.end(3);
  EXPECT_TRUE(lone.begin(flow(0, both), 1.1, 4)) << "all have left";
}

TEST(LoneFlows, ThatHaveNotMovedAByteKeepWhatIsLeftOfTheirLatency) {
  const std::vector<Crossing> link{{0, 1}};
  LoneFlows lone(1, 2);
  EXPECT_TRUE(lone.begin({.task = 0, .lane = 0, .latency = 0.25, .bytes = 1e9, .crossings = link, .rate_limit = 5}, 1.25, 1));
  EXPECT_FALSE(lone.begin({.task = 1, .lane = 1, .bytes = 1e9, .crossings = link}, 1, 1.125));
  ASSERT_EQ(lone.met().size(), 1U);
  EXPECT_EQ(lone.met()[0].latency, 0.125);
  EXPECT_EQ(lone.met()[0].bytes, 1e9);
  EXPECT_EQ(lone.met()[0].rate_limit, 5);
}

TEST(LoneFlows, DoNotMeetThoseThatEndAsTheyBegin) {
  const std::vector<Crossing> link{{0, 1}};
  LoneFlows lone(1, 2);
  EXPECT_TRUE(lone.begin({.task = 0, .lane = 0, .bytes = 1e9, .crossings = link}, 1, 0));
  EXPECT_TRUE(lone.begin({.task = 1, .lane = 1, .bytes = 1e9, .crossings = link}, 1, 1));
  lone.end(0);
  lone.end(1);
}

struct Planned {
  Seconds begin = 0;
  CollectiveCost cost;
  Layout layout;
};

const std::vector<Link> links(6, {.name = "link", .capacity = 1e9});

/// Flows of a few milliseconds over one to three of six links; between none and all of them have met others.
std::vector<Planned> random_flows(std::uint32_t seed, Seconds until) {
  std::mt19937 random(seed);
  const auto between = [&](double low, double high) { return std::uniform_real_distribution(low, high)(random); };
  std::vector<Planned> planned(200);
  for (Planned& flow : planned) {
    flow.begin = between(0, until);
    flow.cost = {.latency = between(0, 1) < 0.3 ? 0 : between(0, 1e-3),
                 .bytes_per_channel = static_cast<Bytes>(between(1, 4e6)),
                 .rate_limit = between(0, 1) < 0.2 ? between(1e8, 1e9) : 0};
    std::vector<LinkId> ids{0, 1, 2, 3, 4, 5};
    std::ranges::shuffle(ids, random);
    for (std::size_t i = 0; i < 1 + random() % 3; ++i)
      flow.layout.paths.front().crossings.push_back({ids[i], 1 + static_cast<std::uint32_t>(random() % 3)});
  }
  return planned;
}

struct Ended {
  std::vector<Seconds> ends;
  double in_network = 0;  ///< flows that were begun there
};

/// Begins the flows at their dates, all of them in the network, or there those that are not alone.
Ended played(const std::vector<Planned>& planned, bool lone_apart) {
  SharedDoubles shared(planned.size() + 1);
  const std::span<double> ends = shared.values().first(planned.size());
  double& in_network = shared.values().back();
  run_in_child([&] {
    const auto count = static_cast<std::uint32_t>(planned.size());
    LaneDates events(2 * planned.size());  // by flow the end, and `count` later the beginning
    std::vector<Communicator> communicators;
    for (FlowId flow = 0; flow < planned.size(); ++flow) {
      events.set({planned[flow].begin, flow, count + flow});
      communicators.push_back({.name = "pair", .axis = Axis::pp, .members = {0, 1}, .layout = planned[flow].layout});
    }
    LoneFlows lone(links.size(), planned.size());
    std::unique_ptr<FluidNetwork> network;
    const auto begin = [&](FlowId flow, Seconds now) {
      const auto& [date, cost, layout] = planned[flow];
      const LoneFlows::Flow one{.task = flow,
                                .lane = flow,
                                .latency = cost.latency,
                                .bytes = static_cast<double>(cost.bytes_per_channel),
                                .crossings = layout.paths.front().crossings,
                                .rate_limit = cost.rate_limit};
      const Seconds alone = uncontended_time(cost, layout, links);
      if (lone_apart && lone.begin(one, alone, now)) return events.set({now + alone, flow, flow});
      const auto start = [&](const LoneFlows::Flow& of) {
        events.remove(of.lane);
        network->start(of.task, of.lane, of.latency, of.bytes, of.crossings, of.rate_limit);
        ++in_network;
      };
      std::ranges::for_each(lone.met(), start);
      start(one);
    };
    const auto woken = [&] {
      while (!events.empty() && events.first().at <= network->clock()) {
        const LaneDates::Date event = events.first();
        events.remove(event.lane);
        if (event.lane >= count) {
          begin(event.task, event.at);
        } else {
          lone.end(event.lane);
          ends[event.task] = event.at;
        }
      }
      if (!events.empty()) network->wake_at(events.first().at);
    };
    const auto ended = [&](FlowId flow) {
      events.set({network->clock(), flow, flow});
      network->wake_at(events.first().at);
    };
    network = make_fluid_network({.links = links, .communicators = communicators, .lanes = planned.size()}, {ended, woken});
    network->wake_at(events.first().at);
    network->run();
  });
  return {{ends.begin(), ends.end()}, in_network};
}

/// From a network on which nearly all meet to one on which few do.
TEST(LoneFlows, EndAsTheyWouldInTheNetwork) {
  for (std::uint32_t seed = 1; seed <= 24; ++seed) {
    const std::vector<Planned> planned = random_flows(seed, seed % 3 == 0 ? 0.1 : seed % 3 == 1 ? 1 : 10);
    const Ended network = played(planned, false), apart = played(planned, true);
    for (FlowId flow = 0; flow < planned.size(); ++flow) {
      EXPECT_GT(apart.ends[flow], planned[flow].begin) << seed;
      EXPECT_NEAR(apart.ends[flow], network.ends[flow], 1e-11) << seed << ' ' << flow;
    }
    const double share = apart.in_network / network.in_network;
    EXPECT_GT(share, seed % 3 == 0 ? 0.8 : 0) << seed;
    EXPECT_LT(share, seed % 3 == 2 ? 0.5 : 1.1) << seed;
  }
}

/// Of flows over links of their own, on some ranks at random times. SimGrid's sums of dates leave a third of them off by a
/// rounding.
TEST(LoneFlows, TakeExactlyTheirLatencyAndTheirBytesAtTheirRate) {
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
}  // namespace tandem::sim::lone_flows_test
