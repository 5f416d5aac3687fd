// Steps on some of a larger cluster's GPUs.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "scenarios/reading/load.h"
#include "sim/simulate.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::studies::rank_placement_test {
namespace {

Scenario base(const std::vector<std::string>& overrides) { return parse_scenario(base_text(), "base", overrides); }

Seconds step_time(const Scenario& scenario) { return simulate(lower(scenario, make_world(scenario, true))).timeline.makespan(); }

// 32 nodes share a leaf on this cluster: wherever below one leaf the ranks lie, and whatever else hangs there, nothing changes.
TEST(StepOnPartOfACluster, TakesAsLongAsAClusterOfItsOwnBelowOneLeaf) {
  const Seconds alone = step_time(base({}));
  EXPECT_DOUBLE_EQ(step_time(base({"cluster.gpus=256", placed_on({0, 1, 2, 3})})), alone);
  EXPECT_DOUBLE_EQ(step_time(base({"cluster.gpus=256", placed_on({30, 2, 17, 9})})), alone);
}

TEST(StepOnPartOfACluster, FoldedIsAsWhole) {
  const Scenario scenario = base({"cluster.gpus=128", "cluster.fabric.leaf_ports=2", "cluster.fabric.pod_leaves=16",
                                  "cluster.fabric.oversubscription=[1,4,2]", placed_on({1, 4, 5, 13})});
  EXPECT_NEAR(step_time(scenario), simulate(lower(scenario, make_world(scenario, false))).timeline.makespan(), 1e-9);
}

}  // namespace
}  // namespace tandem::studies::rank_placement_test
