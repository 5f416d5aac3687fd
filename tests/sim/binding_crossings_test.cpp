#include "sim/binding_crossings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/simulate.h"
#include "tests/runtime/small_dag.h"

namespace tandem::sim::binding_crossings_test {
namespace {

using testing::ElementsAre;

// Two ranks with NICs of 1 GB/s below a leaf of 2 GB/s.
TEST(BindingCrossings, LeaveOutALeafThatCarriesAllItsNics) {
  SmallDag small;
  const LinkId first = small.link(1e9), second = small.link(1e9), leaf = small.link(2e9);
  const TaskId one = small.flow(1'000'000, {{first, 1}, {leaf, 1}}),
               other = small.flow(1'000'000, {{leaf, 1}, {second, 1}, {first, 0}});
  const Dag dag = small.finish();
  const auto binding = [&](TaskId flow, const std::vector<Link>& links) {
    const BindingCrossings all(dag, links);
    const std::span<const Crossing> crossings = all.of(dag.groups[dag.tasks[flow].group].communicator, 0);
    return std::vector<Crossing>(crossings.begin(), crossings.end());
  };
  EXPECT_THAT(binding(one, dag.links), ElementsAre(Crossing{first, 1}));
  EXPECT_THAT(binding(other, dag.links), ElementsAre(Crossing{second, 1}));
  const std::vector<Link> faster = faster_links(dag.links, {Tier::nvlink, 2});  // of all three, as all are of this tier
  EXPECT_THAT(binding(one, faster), ElementsAre(Crossing{first, 1}));
  std::vector<Link> slower_leaf = dag.links;
  slower_leaf[leaf].capacity = 1.9e9;
  EXPECT_THAT(binding(one, slower_leaf), ElementsAre(Crossing{first, 1}, Crossing{leaf, 1}));
}

// Flows that meet on such a leaf alone take as long as each by itself, to the last bit.
TEST(BindingCrossings, AreAllThatFlowsMeetOn) {
  SmallDag small;
  const LinkId first = small.link(1e9), second = small.link(1e9), leaf = small.link(2e9);
  const TaskId one = small.flow(1'000'000, {{first, 1}, {leaf, 1}}), other = small.flow(3'000'000, {{second, 1}, {leaf, 1}});
  const Timeline timeline = simulate(small.finish()).timeline;
  EXPECT_EQ(timeline.end[one], timeline.start[one] + 1e-3);
  EXPECT_EQ(timeline.end[other], timeline.start[other] + 3e-3);
}

}  // namespace
}  // namespace tandem::sim::binding_crossings_test
