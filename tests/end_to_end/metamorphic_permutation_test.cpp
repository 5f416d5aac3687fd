// Nodes that are alike may change places: nothing of a step shows which is which.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "studies/step/simulated_step.h"
#include "tests/end_to_end/random_scenarios.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::metamorphic_permutation_test {
namespace {

/// One switch that never blocks, whose nodes are alike but for what is said of single ones.
const std::vector<std::string> alike{"cluster.fabric=~",     "cluster.fabric.kind=switch", "faults=~",
                                     "cluster.other_gpus=~", "cluster.gpus_per_node=2",    "cluster.nics_per_node=2"};

std::string placement(const std::vector<int>& nodes, int ranks) {
  std::string list;
  for (int rank = 0; rank < ranks; ++rank)
    list += (list.empty() ? "[" : ",") + std::to_string(2 * nodes[static_cast<std::size_t>(rank / 2)] + rank % 2);
  return "parallelism.placement=" + list + "]";
}

/// Returns whether the scenario has nodes to permute.
bool expect_no_difference(const RandomScenario& drawn) {
  const auto ranks = static_cast<int>(drawn.scenario.parallelism.world_size());
  if (ranks < 4 || ranks % 2 != 0) return false;
  std::vector<int> nodes(static_cast<std::size_t>(ranks / 2));
  std::iota(nodes.begin(), nodes.end(), 0);
  std::vector<std::string> changes = alike;
  changes.push_back(placement(nodes, ranks));
  const std::optional<Scenario> before = with_changes(drawn, changes);
  std::mt19937 random(drawn.seed);
  for (std::size_t i = nodes.size() - 1; i > 0; --i) std::swap(nodes[i], nodes[random() % (i + 1)]);
  changes.back() = placement(nodes, ranks);
  const std::optional<Scenario> after = with_changes(drawn, changes);
  EXPECT_EQ(before.has_value(), after.has_value()) << drawn.text();
  if (!before || !after) return false;
  const StepResult one = simulate_step(*before, true).result, other = simulate_step(*after, true).result;
  EXPECT_NEAR(one.step_time, other.step_time, 1e-12 * one.step_time) << drawn.text() << " " << changes.back();
  EXPECT_EQ(one.peak_memory(), other.peak_memory()) << drawn.text();
  EXPECT_EQ(one.rank_classes, other.rank_classes) << drawn.text();
  EXPECT_EQ(one.tasks, other.tasks) << drawn.text();
  return true;
}

constexpr std::size_t few = 30, many = 1500;

void expect_no_differences(std::size_t count, std::uint32_t first) {
  std::size_t compared = 0;
  for (const RandomScenario& drawn : random_scenarios(count, first, 1)) {
    try {
      compared += expect_no_difference(drawn) ? 1 : 0;
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what() << "\n" << drawn.text();
    }
  }
  EXPECT_GE(compared, count / 3);
}

TEST(PermutedNodes, ChangeNothing) { expect_no_differences(few, 1); }
TEST(SlowPermutedNodes, ChangeNothing) { expect_no_differences(many, 1000); }

}  // namespace
}  // namespace tandem::studies::metamorphic_permutation_test
