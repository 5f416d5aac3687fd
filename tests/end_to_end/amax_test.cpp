// Delayed scaling's reductions of maxima: one after each pass of a chunk, over the ranks of its stage, with nothing beside it.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "scenarios/lowering/lower.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::amax_test {
namespace {

constexpr int micro_batches = 8;  // of the tiny scenario on one replica

Scenario reducing(const std::string& overrides) {
  return tiny_cluster(words("training.precision=fp8 training.framework=megatron-core " + overrides));
}

Dag lowered(const Scenario& scenario) { return lower(scenario, make_world(scenario, false)); }

std::vector<TaskId> reductions(const Dag& dag) {
  std::vector<TaskId> found;
  for (TaskId id = 0; id < dag.tasks.size(); ++id)
    if (dag.tasks[id].op == OpKind::all_reduce && dag.name_of_task(id).starts_with("amax")) found.push_back(id);
  return found;
}

std::size_t members(const Dag& dag, TaskId id) {
  return dag.communicators[dag.groups[dag.tasks[id].group].communicator].members.size();
}

struct Case {
  const char* mesh;
  int ranks, chunks, replicas;
  std::size_t group, within;  ///< ranks that share maxima: all of a stage, and without data-parallel ones
};

class Amax : public testing::TestWithParam<Case> {};

// Each rank takes part after each forward and each backward of each of its chunks.
TEST_P(Amax, IsReducedAfterEachPassOfAChunk) {
  const Case& c = GetParam();
  for (const bool within : {false, true}) {
    const Dag dag = lowered(reducing(std::string(c.mesh) + (within ? " training.tp_only_amax_red=true" : "")));
    const std::vector<TaskId> all = reductions(dag);
    const std::size_t group = within ? c.within : c.group;
    EXPECT_EQ(all.size(), group < 2 ? 0U : static_cast<std::size_t>(c.ranks * c.chunks * micro_batches / c.replicas * 2));
    for (const TaskId id : all) EXPECT_EQ(members(dag, id), group);
  }
}

TEST_P(Amax, LeavesTheStepAsItIs) { EXPECT_LT(largest_difference(reducing(GetParam().mesh)), 1e-5); }

INSTANTIATE_TEST_SUITE_P(
    Meshes, Amax,
    testing::Values(Case{"parallelism.tp=2 parallelism.sp=true", 2, 1, 1, 2, 2}, Case{"parallelism.dp=4", 4, 1, 4, 4, 1},
                    Case{"parallelism.tp=2 parallelism.pp=2 parallelism.dp=2", 8, 1, 2, 4, 2},
                    Case{"parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b parallelism.dp=2", 4, 2, 2, 2, 1},
                    Case{"parallelism.cp=2 parallelism.dp=2 training.recompute=full", 4, 1, 2, 4, 2},
                    Case{"parallelism.pp=2 parallelism.dp=2 training.schedule=zb-h1", 4, 1, 2, 2, 1}));

// A number of fp32 for each cast since the last one; a transpose finds no maximum.
TEST(AmaxOfAPass, CountsWhatWasCast) {
  const Dag dag = lowered(reducing("parallelism.tp=2 training.recompute=full"));
  std::size_t casts = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id)
    casts += dag.tasks[id].rank == 0 && dag.tasks[id].op == OpKind::cast && dag.name_of_task(id) != "transpose" ? 1 : 0;
  Bytes numbers = 0;
  for (const TaskId id : reductions(dag)) {
    ASSERT_EQ(dag.groups[dag.tasks[id].group].bytes % 4, 0);
    if (dag.tasks[id].rank == 0) numbers += dag.groups[dag.tasks[id].group].bytes / 4;
  }
  EXPECT_GT(casts, 0U);
  EXPECT_EQ(static_cast<std::size_t>(numbers), casts);
}

// The kernel that follows on the rank waits for it.
TEST(AmaxOfAPass, HoldsTheRankUp) {
  const Dag dag = lowered(reducing("parallelism.dp=2"));
  for (const TaskId id : reductions(dag)) {
    const auto next = std::ranges::find_if(dag.tasks.begin() + id, dag.tasks.end(), [&](const Task& task) {
      return task.rank == dag.tasks[id].rank && task.stream == Stream::compute;
    });
    ASSERT_NE(next, dag.tasks.end());
    EXPECT_EQ(dag.name_of_task(static_cast<TaskId>(next - dag.tasks.begin())), "scales");
  }
}

TEST(AmaxOfAPass, IsOfDelayedScalesAlone) {
  for (const char* other : {"training.recipe=current", "training.recipe=mxfp8", "training.precision=bf16"})
    EXPECT_TRUE(reductions(lowered(reducing(std::string("parallelism.dp=2 ") + other))).empty()) << other;
}

}  // namespace
}  // namespace tandem::studies::amax_test
