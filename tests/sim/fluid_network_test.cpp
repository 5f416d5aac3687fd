#include "sim/fluid_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/child_process.h"
#include "sim/simulate.h"
#include "tests/runtime/small_dag.h"
#include "tests/sim/limited_flow.h"

namespace tandem::sim::fluid_network_test {
namespace {

constexpr Seconds us = 1e-6;

void expect_relative(Seconds actual, Seconds expected) { EXPECT_NEAR(actual, expected, 1e-9 * expected); }

std::unique_ptr<FluidNetwork> network_of_one_link(std::size_t lanes, FluidNetwork::Callbacks callbacks) {
  const std::vector<Communicator> pair{{.name = "pair", .members = {0, 1}, .layout = {.paths = {{.crossings = {{0, 1}}}}}}};
  return make_fluid_network({.links = {{.name = "link", .capacity = 1e9}}, .communicators = pair, .lanes = lanes},
                            std::move(callbacks));
}

TEST(FluidNetwork, IsLoadedWithoutNs3) {
  open_simgrid();
  std::ifstream file("/proc/self/maps");
  const std::string maps{std::istreambuf_iterator(file), {}};
  EXPECT_NE(maps.find("/libsimgrid.so"), std::string::npos);
  EXPECT_EQ(maps.find("/libns3-"), std::string::npos);
}

TEST(FluidNetwork, RingAllReduceTakesTheBusBandwidth) {
  constexpr std::uint32_t n = 8;
  SmallDag small;
  Layout layout{.intra_latency = 3.4 * us};
  for (std::uint32_t i = 0; i < n; ++i) layout.paths.front().crossings.push_back({small.link(450e9), 1});
  const TaskId task = small.all_reduce(small.rank(), small.communicator(n, layout), 1'000'000'000);
  const Seconds latency = collective_cost(OpKind::all_reduce, 1'000'000'000, n, layout).latency;
  expect_relative(simulate(small.finish()).timeline.end[task], latency + 2.0 * (n - 1) / n * 1e9 / 450e9);
}

TEST(FluidNetwork, CallsBetweenEventsOfFlowsComeWhenTheyAreDue) {
  // At a rate of 1 GB/s a flow of 1 GB starts in one of many calls and ends a second later, between two others.
  std::vector<Seconds> dates;
  std::mt19937 random(1);
  for (int i = 0; i < 3'000; ++i) dates.push_back(std::uniform_real_distribution(1e-6, 3.0)(random));
  std::ranges::sort(dates);
  constexpr std::size_t starts = 700;
  SharedDoubles found(3);
  run_in_child([&] {
    double &end = found.values()[0], &calls = found.values()[1], &worst = found.values()[2];
    const std::vector<Crossing> crossings{{0, 1}};
    std::size_t next = 0;
    std::unique_ptr<FluidNetwork> network;
    const auto woken = [&] {
      calls += 1;
      worst = std::max(worst, std::abs(network->clock() / dates[next] - 1));
      if (next == starts) network->start(0, 0, 0, 1'000'000'000, crossings, 0);
      if (++next < dates.size()) network->wake_at(dates[next]);
    };
    network = network_of_one_link(1, {[&](FlowId) { end = network->clock(); }, woken});
    network->wake_at(dates.front());
    network->run();
  });
  expect_relative(found.values()[0], dates[starts] + 1);
  EXPECT_EQ(found.values()[1], static_cast<double>(dates.size()));
  EXPECT_LT(found.values()[2], 1e-15);
}

// A date is relative to where the network began anew: added to that, the clock's own may round to before the clock.
TEST(FluidNetwork, IsCalledAtTheClockHoweverThatRounds) {
  constexpr int times = 6, first = 10, more = 4;  // up to half of the clock, sums are exact
  SharedDoubles calls(1);
  int flows = 0;
  run_in_child([&] {
    std::mt19937 random(1);
    const std::vector<Crossing> crossings{{0, 1}};
    std::unique_ptr<FluidNetwork> network;
    for (int time = 0, left = 0, begun = first; time < times; ++time, begun *= more) {
      left = begun;
      const auto woken = [&] {
        ++calls.values()[0];
        if (left-- > 0) network->start(0, 0, 0, static_cast<double>(1'000 + random() % 1'000'000), crossings, 0);
      };
      const FluidNetwork::Callbacks callbacks{[&](FlowId) { network->wake_at(network->clock()); }, woken};
      if (network)
        network->begin_anew(callbacks);
      else
        network = network_of_one_link(1, callbacks);
      network->wake_at(1e-3);
      network->run();
    }
  });
  for (int time = 0, begun = first; time < times; ++time, begun *= more) flows += begun;
  EXPECT_EQ(calls.values()[0], flows + times);
}

TEST(FluidNetwork, BeginsAnewAtZero) {
  // A tenth of a second after it begins, a flow of 1 GB starts, and meets another one half a second later: it ends after 1.6 s.
  constexpr std::size_t times = 5;
  SharedDoubles found(2 * times);
  run_in_child([&] {
    const std::vector<Crossing> crossings{{0, 1}};
    std::unique_ptr<FluidNetwork> network;
    for (std::size_t time = 0; time < times; ++time) {
      FlowId started = 0;
      const auto woken = [&] {
        if (network->clock() < (started == 0 ? 0.1 : 0.6)) throw std::logic_error("called too early");
        network->start(started, started, 0, started == 0 ? 1'000'000'000 : 2'000'000'000, crossings, 0);
        if (++started < 2) network->wake_at(0.6);
      };
      const auto ended = [&, time](FlowId flow) { found.values()[2 * time + flow] = network->clock(); };
      if (time == 0) {
        network = network_of_one_link(2, {ended, woken});
      } else {
        network->begin_anew({ended, woken});
      }
      network->wake_at(0.1);
      network->run();
    }
  });
  for (std::size_t time = 0; time < times; ++time) {
    EXPECT_NEAR(found.values()[2 * time], 1.6, 1e-12);
    EXPECT_NEAR(found.values()[2 * time + 1], 3.1, 1e-12);
  }
}

TEST(FluidNetwork, MultiplicityIsConsumption) {
  // 2x + y = C and x = y: both run at C/3. A ends at 3 ms; B has then 1 MB left and the link to itself.
  SmallDag small;
  const LinkId link = small.link(1e9);
  const TaskId a = small.flow(1'000'000, {{link, 2}});
  const TaskId b = small.flow(2'000'000, {{link, 1}});
  const Timeline timeline = simulate(small.finish()).timeline;
  expect_relative(timeline.end[a], 3e-3);
  expect_relative(timeline.end[b], 4e-3);
}

TEST(FluidNetwork, CommonDivisorsLeaveSharesAlone) {
  // 2x + y = 1e9 on the shared link, both sides a thousand times as much, would give x = y = C/3; but A's own link, crossed four
  // times, holds it to x = C/4, and leaves B y = C/2.
  SmallDag small;
  const LinkId shared = small.link(1e12);
  const LinkId own = small.link(1e9);
  const TaskId a = small.flow(1'000'000, {{shared, 2'000}, {own, 4}});
  const TaskId b = small.flow(1'000'000, {{shared, 1'000}});
  const Timeline timeline = simulate(small.finish()).timeline;
  expect_relative(timeline.end[a], 4e-3);
  expect_relative(timeline.end[b], 2e-3);
}

TEST(FluidNetwork, ThousandsOfCrossingsOfOneLink) {
  SmallDag small;
  const LinkId link = small.link(3'001e6);
  const TaskId a = small.flow(1'000'000, {{link, 3'000}});
  const TaskId b = small.flow(1'000'000, {{link, 1}});
  const Timeline timeline = simulate(small.finish()).timeline;
  expect_relative(timeline.end[a], 1.0);
  expect_relative(timeline.end[b], 1.0);
}

TEST(FluidNetwork, FlowsThatBeginTogetherSeeAllTheirLinks) {
  // Four flows begin at one date and meet first on a wide link. Two more narrow links are shared by two flows each: 1 MB at half
  // of 1 GB/s takes 2 ms. SimGrid looks for the links that a starting flow changes from the first of its route; where another
  // flow has touched that one at the same date, it would stop there and leave the rest unshared.
  SmallDag small;
  const LinkId wide = small.link(128e9);
  const LinkId narrow = small.link(1e9);
  const LinkId other = small.link(1e9);
  std::vector<TaskId> flows;
  for (const LinkId own : {narrow, narrow, other, other}) flows.push_back(small.flow(1'000'000, {{wide, 1}, {own, 1}}, 1 * us));
  const Timeline timeline = simulate(small.finish()).timeline;
  for (const TaskId flow : flows) expect_relative(timeline.end[flow], 2e-3 + 1 * us);
}

TEST(FluidNetwork, LatencyDoesNotWeighAFlow) {
  // In the 18 us before B begins, A moves 18 of its 1000 us worth alone. Sharing, A ends at 20 + 2 * 982 us; B has 18 us left.
  SmallDag small;
  const LinkId link = small.link(1e9);
  const TaskId a = small.flow(1'000'000, {{link, 1}}, 2 * us);
  const TaskId b = small.flow(1'000'000, {{link, 1}}, 20 * us);
  const Timeline timeline = simulate(small.finish()).timeline;
  expect_relative(timeline.end[a], 1984 * us);
  expect_relative(timeline.end[b], 2002 * us);
}

TEST(FluidNetwork, ZeroLatencyFlowSharesLikeAnyOther) {
  SmallDag small;
  const LinkId link = small.link(1e9);
  const TaskId a = small.flow(1'000'000, {{link, 1}}, 0);
  const TaskId b = small.flow(1'000'000, {{link, 1}}, 1 * us);
  const Timeline timeline = simulate(small.finish()).timeline;
  expect_relative(timeline.end[a], 1999 * us);  // 1 us alone, 2 * 999 us shared
  expect_relative(timeline.end[b], 2000 * us);  // and the last of its own 1000 us worth alone
}

TEST(FluidNetwork, FastLinksOfLongLatencyAreNotCapped) {
  SmallDag small;
  const TaskId task = small.flow(9'000'000'000, {{small.link(900e9), 1}}, 20 * us);
  expect_relative(simulate(small.finish()).timeline.end[task], 0.01 + 20 * us);
}

TEST(FluidNetwork, ALimitedFlowLeavesTheRestToOthers) {
  // Both begin together. A keeps to a quarter of the link and B takes three; when B has ended, A goes on as before.
  SmallDag small(Architecture::hopper);
  const LinkId link = small.link(1e9);
  const auto a = limited_flow(small, 1'000'000, {{link, 1}}, 0.25e9);
  const TaskId b = small.flow(1'500'000, {{link, 1}}, a.cost.latency);
  const Timeline timeline = simulate(small.finish()).timeline;
  ASSERT_DOUBLE_EQ(a.cost.rate_limit, 0.25e9);
  expect_relative(timeline.end[a.task], a.cost.latency + 4e-3);
  expect_relative(timeline.end[b], a.cost.latency + 2e-3);
}

TEST(FluidNetwork, ALimitAboveTheFairShareIsNone) {
  SmallDag small(Architecture::hopper);
  const LinkId link = small.link(1e9);
  const auto a = limited_flow(small, 1'000'000, {{link, 1}}, 0.75e9);
  const TaskId b = small.flow(1'000'000, {{link, 1}}, a.cost.latency);
  const Timeline timeline = simulate(small.finish()).timeline;
  expect_relative(timeline.end[a.task], a.cost.latency + 2e-3);
  expect_relative(timeline.end[b], a.cost.latency + 2e-3);
}

TEST(FluidNetwork, LimitedFlowsThatBeginTogetherSeeAllTheirLinks) {
  // As above, with two limited flows on each of the narrow links: 0.3 GB/s of 1 GB/s each, which leaves 0.4 to a third.
  SmallDag small(Architecture::hopper);
  const LinkId wide = small.link(128e9);
  const LinkId narrow = small.link(1e9);
  const LinkId other = small.link(1e9);
  std::vector<LimitedFlow> limited;
  for (const LinkId own : {narrow, narrow, other, other})
    limited.push_back(limited_flow(small, 600'000, {{wide, 1}, {own, 1}}, 0.3e9));
  const Seconds latency = limited.front().cost.latency;
  const TaskId third = small.flow(800'000, {{wide, 1}, {narrow, 1}}, latency);
  const Timeline timeline = simulate(small.finish()).timeline;
  for (const auto& flow : limited) expect_relative(timeline.end[flow.task], latency + 2e-3);
  expect_relative(timeline.end[third], latency + 2e-3);
}

TEST(FluidNetwork, FreeLinksDoNotDisturb) {
  SmallDag small;
  const LinkId free = small.link(1e18);
  const TaskId a = small.flow(1'000'000, {{free, 1}, {small.link(1e9), 1}});
  const TaskId b = small.flow(1'000'000, {{free, 3}, {small.link(2e9), 1}});
  const Timeline timeline = simulate(small.finish()).timeline;
  expect_relative(timeline.end[a], 1e-3);
  expect_relative(timeline.end[b], 0.5e-3);
}

TEST(FluidNetwork, WhatIsLeftOfAnAlmostFullLinkIsShared) {
  // A's own link holds it just below the fair share of C / 200'001 and leaves B six millionths of C, 6 MB/s, until A ends at 1 s.
  // B has then 1 MB left for its own link of 1 GB/s.
  SmallDag small;
  const LinkId shared = small.link(1e12);
  const TaskId a = small.flow(4'999'970, {{shared, 200'000}, {small.link(4'999'970), 1}});
  const TaskId b = small.flow(7'000'000, {{shared, 1}, {small.link(1e9), 1}});
  const Timeline timeline = simulate(small.finish()).timeline;
  expect_relative(timeline.end[a], 1.0);
  expect_relative(timeline.end[b], 1.001);
}

TEST(FluidNetwork, NoBytesOrNoLinksTakeTheLatencyAlone) {
  SmallDag small;
  const LinkId link = small.link(1e9);
  const TaskId no_bytes = small.flow(0, {{link, 1}}, 5 * us);
  const TaskId no_links = small.flow(1'000, {}, 7 * us);
  const TaskId uncrossed = small.flow(1'000, {{link, 0}}, 9 * us);
  const TaskId nothing = small.flow(0, {}, 0);
  const Timeline timeline = simulate(small.finish()).timeline;
  EXPECT_EQ(timeline.end[no_bytes], 5 * us);
  EXPECT_EQ(timeline.end[no_links], 7 * us);
  EXPECT_EQ(timeline.end[uncrossed], 9 * us);
  EXPECT_EQ(timeline.end[nothing], 0);
}

TEST(FluidNetwork, EndsLessThanANanosecondApartStayApart) {
  SmallDag small;
  const TaskId a = small.flow(1'000'000, {{small.link(1e9), 1}});
  const TaskId b = small.flow(1'000'000, {{small.link(1e9 * (1 - 3e-7)), 1}});  // 0.3 ns later
  const Timeline timeline = simulate(small.finish()).timeline;
  EXPECT_NEAR(timeline.end[b] - timeline.end[a], 0.3e-9, 2e-12);
}

TEST(FluidNetwork, OneFlowOfAClassHasTheTimesOfAllOfThem) {
  // 32 senders behind NICs of 50 GB/s and 8 behind NICs of 25 GB/s meet on an uplink of 400 GB/s. Folded, one flow of each class
  // crosses the uplink 32 and 8 times.
  constexpr Bytes bytes = 100'000'000;
  SmallDag unfolded;
  const LinkId uplink = unfolded.link(400e9);
  std::vector<TaskId> fast, slow;
  for (int i = 0; i < 32; ++i) fast.push_back(unfolded.flow(bytes, {{unfolded.link(50e9), 1}, {uplink, 1}}, 3 * us));
  for (int i = 0; i < 8; ++i) slow.push_back(unfolded.flow(bytes / 2, {{unfolded.link(25e9), 1}, {uplink, 1}}, 2 * us, 500'000));
  const Timeline all = simulate(unfolded.finish()).timeline;

  SmallDag folded;
  const LinkId folded_uplink = folded.link(400e9);
  const TaskId one_fast = folded.flow(bytes, {{folded.link(50e9), 1}, {folded_uplink, 32}}, 3 * us);
  const TaskId one_slow = folded.flow(bytes / 2, {{folded.link(25e9), 1}, {folded_uplink, 8}}, 2 * us, 500'000);
  const Timeline classes = simulate(folded.finish()).timeline;

  for (const TaskId task : fast) EXPECT_NEAR(all.end[task], classes.end[one_fast], 1e-9);
  for (const TaskId task : slow) EXPECT_NEAR(all.end[task], classes.end[one_slow], 1e-9);
}

// The definition of max-min fairness, played event by event.
struct ReferenceFlow {
  double bytes = 0;
  Seconds begin = 0;
  std::vector<Crossing> crossings;
  double limit = std::numeric_limits<double>::infinity();
  double rate = 0;
  Seconds end = 0;
};

void share_fairly(std::vector<ReferenceFlow*> unsettled, std::vector<double> capacity) {
  while (!unsettled.empty()) {
    std::vector<double> demand(capacity.size(), 0);
    for (const ReferenceFlow* flow : unsettled) {
      for (const Crossing& crossing : flow->crossings) demand[crossing.link] += crossing.multiplicity;
    }
    double rate = std::numeric_limits<double>::infinity();
    LinkId bottleneck = 0;
    for (LinkId link = 0; link < capacity.size(); ++link) {
      if (demand[link] == 0 || capacity[link] / demand[link] >= rate) continue;
      rate = capacity[link] / demand[link];
      bottleneck = link;
    }
    const auto slowest = std::ranges::min_element(unsettled, {}, &ReferenceFlow::limit);
    if ((*slowest)->limit < rate) {
      (*slowest)->rate = (*slowest)->limit;
      for (const Crossing& crossing : (*slowest)->crossings) capacity[crossing.link] -= (*slowest)->rate * crossing.multiplicity;
      unsettled.erase(slowest);
      continue;
    }
    std::erase_if(unsettled, [&](ReferenceFlow* flow) {
      const auto& crossings = flow->crossings;
      if (std::ranges::none_of(crossings, [&](const Crossing& crossing) { return crossing.link == bottleneck; })) return false;
      flow->rate = rate;
      for (const Crossing& crossing : crossings) capacity[crossing.link] -= rate * crossing.multiplicity;
      return true;
    });
  }
}

void play(std::vector<ReferenceFlow>& flows, const std::vector<double>& capacity) {
  Seconds now = 0;
  std::vector<ReferenceFlow*> running;
  std::vector<ReferenceFlow*> waiting;
  for (ReferenceFlow& flow : flows) waiting.push_back(&flow);
  while (!running.empty() || !waiting.empty()) {
    share_fairly(running, capacity);
    Seconds next = std::numeric_limits<double>::infinity();
    for (const ReferenceFlow* flow : waiting) next = std::min(next, flow->begin);
    for (const ReferenceFlow* flow : running) next = std::min(next, now + flow->bytes / flow->rate);
    for (ReferenceFlow* flow : running) flow->bytes -= flow->rate * (next - now);
    now = next;
    std::erase_if(running, [&](ReferenceFlow* flow) {
      flow->end = now;
      return flow->bytes < 1e-3;
    });
    std::erase_if(waiting, [&](ReferenceFlow* flow) {
      if (flow->begin > now) return false;
      running.push_back(flow);
      return true;
    });
  }
}

TEST(FluidNetwork, RandomFlowsShareAsTheDefinitionSays) {
  std::mt19937 random(20240611);
  const auto up_to = [&](std::uint32_t limit) { return 1 + static_cast<std::uint32_t>(random() % limit); };
  for (int round = 0; round < 20; ++round) {
    const bool limits = round >= 10;
    SmallDag small(limits ? Architecture::hopper : Architecture::unknown);
    std::vector<double> capacity;
    for (int link = 0; link < 12; ++link) {
      capacity.push_back(up_to(100) * 1e9);
      small.link(capacity.back());
    }
    std::vector<ReferenceFlow> flows;
    std::vector<TaskId> tasks;
    for (int i = 0; i < 40; ++i) {
      ReferenceFlow flow{.bytes = up_to(1'000) * 1e6, .begin = up_to(5'000) * us, .crossings = {}};
      for (LinkId link = 0; link < capacity.size(); ++link) {
        if (random() % 4 == 0) flow.crossings.push_back({link, up_to(30)});
      }
      if (flow.crossings.empty()) flow.crossings.push_back({0, 1});
      if (limits && random() % 2 == 0) {
        flow.limit = up_to(1'000) * 1e6;
        const auto limited = limited_flow(small, static_cast<Bytes>(flow.bytes), flow.crossings, flow.limit);
        flow.begin = limited.cost.latency;
        flow.limit = limited.cost.rate_limit;
        tasks.push_back(limited.task);
      } else {
        tasks.push_back(small.flow(static_cast<Bytes>(flow.bytes), flow.crossings, flow.begin));
      }
      flows.push_back(std::move(flow));
    }
    play(flows, capacity);
    const Timeline timeline = simulate(small.finish()).timeline;
    for (std::size_t i = 0; i < flows.size(); ++i) expect_relative(timeline.end[tasks[i]], flows[i].end);
  }
}

}  // namespace
}  // namespace tandem::sim::fluid_network_test
