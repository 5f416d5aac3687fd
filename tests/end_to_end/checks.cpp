#include "tests/end_to_end/checks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/host/unsharded.h"
#include "scenarios/lowering/lower.h"
#include "sim/simulate.h"
#include "studies/step/executed_step.h"
#include "studies/step/verification.h"

namespace tandem::studies {
namespace {

std::vector<std::vector<TaskId>> tasks_by_rank(const Dag& dag) {
  std::vector<std::vector<TaskId>> tasks(dag.ranks.size());
  for (TaskId id = 0; id < dag.tasks.size(); ++id) tasks[dag.tasks[id].rank].push_back(id);
  return tasks;
}

/// By tensor, what a step adds to each element.
std::map<std::string, std::vector<float>> changes(const Scenario& scenario) {
  ExecutedStep step(scenario, "test");
  const UnshardedState before = gather_unsharded(step.memory());
  step.execute();
  std::map<std::string, std::vector<float>> changes;
  for (const auto& [name, tensor] : gather_unsharded(step.memory()).weights) {
    changes[name] = tensor.values;
    for (std::size_t i = 0; i < tensor.values.size(); ++i) changes[name][i] -= before.weights.at(name).values[i];
  }
  return changes;
}

}  // namespace

double largest_difference_of_changes(const Scenario& scenario) {
  const auto here = changes(scenario), whole = changes(unsharded(scenario));
  double largest = 0;
  for (const auto& [name, reference] : whole) {
    double difference = 0, change = 0;
    for (std::size_t i = 0; i < reference.size(); ++i) {
      difference = std::max(difference, std::abs(double{here.at(name)[i]} - double{reference[i]}));
      change = std::max(change, std::abs(double{reference[i]}));
    }
    largest = std::max(largest, difference / change);
  }
  return largest;
}

double largest_difference(const Scenario& scenario) {
  ExecutedStep step(scenario, "test", {.rounds = false});
  step.execute();
  const StepDifference difference = compare_with_unsharded(step, scenario);
  EXPECT_GT(difference.reference_loss, 1.0);  // ln(96) = 4.6 for a model that knows nothing
  return difference.largest();
}

std::string difference_when_folded(const Scenario& scenario, const World& folded_world) {
  const Dag folded = lower(scenario, folded_world);
  const Dag whole = lower(scenario, make_world(scenario, false));
  const Timeline some = simulate(folded).timeline;
  const Timeline all = simulate(whole).timeline;
  const auto of_class = tasks_by_rank(folded);
  const auto of_rank = tasks_by_rank(whole);
  const Seconds tolerance = 1e-9 * all.makespan();
  for (RankIndex rank = 0; rank < of_rank.size(); ++rank) {
    const std::vector<TaskId>& representative = of_class[folded_world.class_of[whole.ranks[rank].world_rank]];
    const std::string who = "rank " + std::to_string(rank);
    if (representative.size() != of_rank[rank].size()) return who + " has another number of tasks";
    for (std::size_t i = 0; i < of_rank[rank].size(); ++i) {
      const TaskId a = representative[i];
      const TaskId b = of_rank[rank][i];
      if (std::abs(some.start[a] - all.start[b]) <= tolerance && std::abs(some.end[a] - all.end[b]) <= tolerance) continue;
      std::ostringstream text;
      text.precision(12);
      text << who << ", " << whole.name_of_task(b) << ": folded " << some.start[a] << " to " << some.end[a] << ", unfolded "
           << all.start[b] << " to " << all.end[b];
      return text.str();
    }
  }
  return "";
}

std::size_t expect_equal_when_folded(const Scenario& scenario) {
  const World folded = make_world(scenario, true);
  EXPECT_EQ(difference_when_folded(scenario, folded), "");
  return testing::Test::HasFailure() ? 0 : folded.ranks.size();
}

}  // namespace tandem::studies
