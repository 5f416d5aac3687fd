#include "tests/end_to_end/checks.h"

#include <gtest/gtest.h>

#include <vector>

#include "cli/host_step.h"
#include "cli/verification.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/world.h"
#include "sim/simulate.h"

namespace tandem {
namespace {

std::vector<std::vector<TaskId>> tasks_by_rank(const Dag& dag) {
  std::vector<std::vector<TaskId>> tasks(dag.ranks.size());
  for (TaskId id = 0; id < dag.tasks.size(); ++id) tasks[dag.tasks[id].rank].push_back(id);
  return tasks;
}

}  // namespace

double largest_difference(const Scenario& scenario) {
  HostStep step(scenario, "test");
  step.execute();
  const StepDifference difference = compare_with_unsharded(step, scenario);
  EXPECT_GT(difference.reference_loss, 1.0);  // ln(96) = 4.6 for a model that knows nothing
  return difference.largest();
}

std::size_t expect_equal_when_folded(const Scenario& scenario) {
  const World folded_world = make_world(scenario, true);
  const Dag folded = lower(scenario, folded_world);
  const Dag whole = lower(scenario, make_world(scenario, false));
  const Timeline some = simulate(folded).timeline;
  const Timeline all = simulate(whole).timeline;
  const auto of_class = tasks_by_rank(folded);
  const auto of_rank = tasks_by_rank(whole);
  const Seconds tolerance = 1e-9 * all.makespan();
  for (RankIndex rank = 0; rank < of_rank.size(); ++rank) {
    const std::vector<TaskId>& representative = of_class[folded_world.class_of[whole.ranks[rank].world_rank]];
    EXPECT_EQ(representative.size(), of_rank[rank].size());
    for (std::size_t i = 0; i < of_rank[rank].size(); ++i) {
      const TaskId a = representative[i];
      const TaskId b = of_rank[rank][i];
      EXPECT_NEAR(some.start[a], all.start[b], tolerance) << "rank " << rank << ", " << whole.name_of_task(b);
      EXPECT_NEAR(some.end[a], all.end[b], tolerance) << "rank " << rank << ", " << whole.name_of_task(b);
      if (testing::Test::HasFailure()) return 0;
    }
  }
  return folded.ranks.size();
}

}  // namespace tandem
