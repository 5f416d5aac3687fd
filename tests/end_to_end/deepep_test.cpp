// Experts whose tokens DeepEP exchanges: the same numbers as with NCCL, at other times.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "sim/simulate.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::deepep_test {
namespace {

Scenario with_experts(const std::string& overrides) {
  return tiny_cluster(
      words("model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 cluster.gpus_per_node=2 "
            "cluster.nics_per_node=2 " +
            overrides));
}

class DeepEpExperts : public testing::TestWithParam<const char*> {
 protected:
  Scenario scenario() const { return with_experts(std::string("parallelism.dispatcher=deepep ") + GetParam()); }
};

TEST_P(DeepEpExperts, ShardedStepIsTheUnshardedStep) { EXPECT_LT(largest_difference(scenario()), 1e-5); }

TEST_P(DeepEpExperts, FoldedTimesAreTheUnfolded) { EXPECT_GT(expect_equal_when_folded(scenario()), 0U); }

INSTANTIATE_TEST_SUITE_P(Meshes, DeepEpExperts,
                         testing::Values("parallelism.dp=4 parallelism.ep=4", "parallelism.dp=8 parallelism.ep=2",
                                         "parallelism.dp=4 parallelism.ep=4 training.precision=fp8",
                                         "parallelism.dp=8 parallelism.ep=4 parallelism.dispatcher=hybridep "
                                         "training.framework=megatron-core parallelism.zero=1",
                                         "parallelism.dp=8 parallelism.ep=4 parallelism.etp=2 training.precision=fp8 "
                                         "parallelism.pp=2 training.schedule=zb-h1",
                                         "parallelism.tp=2 parallelism.sp=true parallelism.dp=2 parallelism.ep=4 "
                                         "model.moe.node_limit=1 model.moe.capacity_factor=1 training.recompute=full",
                                         "parallelism.ep=4 parallelism.dp=2 parallelism.expert_axis=own training.precision=fp8 "
                                         "training.recompute=[activation] model.moe.shared_experts=1"));

Dag lowered(const std::string& overrides) {
  const Scenario scenario = with_experts("parallelism.dp=4 parallelism.ep=4 " + overrides);
  return lower(scenario, make_world(scenario, true));
}

TEST(DeepEpStep, MovesTokensToTheirRowsInNoTime) {
  const Dag dag = lowered("parallelism.dispatcher=deepep");
  const Timeline timeline = simulate(dag).timeline;
  int moves = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const OpKind op = dag.tasks[id].op;
    if (op != OpKind::permute && op != OpKind::combine && op != OpKind::permute_backward && op != OpKind::combine_backward)
      continue;
    EXPECT_EQ(timeline.duration(id), 0) << dag.name_of_task(id);
    ++moves;
  }
  EXPECT_GT(moves, 0);
}

/// All-to-alls of one rank, layer and micro-batch, in order: to the experts and back, forward and backward.
std::vector<Bytes> exchanges(const Dag& dag) {
  std::vector<Bytes> bytes;
  for (const Task& task : dag.tasks)
    if (task.op == OpKind::all_to_all && task.rank == 0 && task.layer == 0 && task.micro_batch == 0)
      bytes.push_back(dag.groups[task.group].bytes);
  return bytes;
}

TEST(DeepEpStep, SendsFp8ToTheExpertsAndBf16Back) {
  const std::vector<Bytes> nccl = exchanges(lowered("training.precision=fp8"));
  const std::vector<Bytes> deepep = exchanges(lowered("training.precision=fp8 parallelism.dispatcher=deepep"));
  ASSERT_EQ(nccl.size(), 4U);
  ASSERT_EQ(deepep.size(), 4U);
  const Bytes elements = nccl[0] / 2, scales = (elements + 127) / 128;
  for (const std::size_t dispatch : {0U, 2U}) EXPECT_EQ(deepep[dispatch], elements + 4 * scales);
  for (const std::size_t combine : {1U, 3U}) EXPECT_EQ(deepep[combine], nccl[combine]);
  EXPECT_EQ(exchanges(lowered("parallelism.dispatcher=deepep")), exchanges(lowered("")));
}

/// By how much the CPU is late: what it issues next after an exchange of the forward starts so long after its end, at least.
Seconds least_delay_after_dispatch(const std::string& dispatcher) {
  const Dag dag = lowered(
      "training.framework.issue_us.forward=50 training.framework.issue_us.backward=50 "
      "training.framework.issue_us.communication=20 parallelism.dispatcher=" +
      dispatcher);
  const Timeline timeline = simulate(dag).timeline;
  Seconds least = std::numeric_limits<double>::infinity();
  for (TaskId id = 1; id + 1 < dag.tasks.size(); ++id) {
    const bool dispatches = dag.tasks[id].op == OpKind::all_to_all && dag.tasks[id].phase == Phase::forward &&
                            dag.groups[dag.tasks[id].group].bytes > 0 &&
                            dag.name_of_task(id).find("dispatch") != std::string::npos;
    if (dispatches && dag.tasks[id + 1].rank == dag.tasks[id].rank)
      least = std::min(least, timeline.start[id + 1] - timeline.end[id]);
  }
  return least;
}

TEST(HybridEpStep, SendsAGateForEachExpertOfANodeWithEachTokenToTheExperts) {
  const std::string bf16 = "training.precision=bf16 parallelism.dispatcher=";
  const std::vector<Bytes> deepep = exchanges(lowered(bf16 + "deepep"));
  for (const char* gates : {"", " training.gates_at_experts=true"}) {
    std::vector<Bytes> hybrid = exchanges(lowered(bf16 + "hybridep" + gates));
    std::erase(hybrid, 0);  // gates travel with the rows
    ASSERT_EQ(hybrid.size(), 4U);
    const Bytes hidden = 32, rows = deepep[0] / (2 * hidden), of_node = 8 / 2;
    for (const std::size_t of_dispatch : {0U, 3U}) EXPECT_EQ(hybrid[of_dispatch], deepep[of_dispatch] + rows * of_node * 4);
    for (const std::size_t of_combine : {1U, 2U}) EXPECT_EQ(hybrid[of_combine], deepep[of_combine]);
  }
}

// A byte for each of 8 experts and each token of four ranks, once for each dispatch and before it.
TEST(HybridEpStep, GathersWhatAllRanksChoseBeforeTheyDispatch) {
  const Scenario scenario = with_experts("parallelism.dp=4 parallelism.ep=4 parallelism.dispatcher=hybridep");
  const Dag dag = lower(scenario, make_world(scenario, true));
  const Timeline timeline = simulate(dag).timeline;
  const std::int64_t tokens = scenario.training.sequence * scenario.training.micro_batch;
  std::ptrdiff_t gathers = 0, dispatches = 0;
  Seconds gathered = -1;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (task.stream != Stream::ep || task.phase != Phase::forward || dag.groups[task.group].bytes == 0) continue;
    if (task.op == OpKind::all_gather) {
      EXPECT_EQ(dag.groups[task.group].bytes, 4 * tokens * 8);
      gathered = timeline.end[id];
      ++gathers;
    } else if (dag.name_of_task(id) == "dispatch") {
      EXPECT_GE(timeline.start[id], gathered);
      gathered = std::numeric_limits<double>::infinity();  // of each dispatch its own
      ++dispatches;
    }
  }
  EXPECT_GT(gathers, 0);
  EXPECT_EQ(gathers, dispatches);
  const Dag deepep = lowered("parallelism.dispatcher=deepep");
  EXPECT_EQ(
      std::ranges::count_if(deepep.tasks, [](const Task& t) { return t.stream == Stream::ep && t.op == OpKind::all_gather; }), 0);
}

TEST(HybridEpStep, MakesTheCpuWaitForTheTokens) {
  EXPECT_NEAR(least_delay_after_dispatch("hybridep"), 50e-6, 1e-9);
  EXPECT_LT(least_delay_after_dispatch("deepep"), 49e-6);
}

TEST(DeepEpStep, IsFasterThanNcclOverNodes) {
  const auto time = [](const std::string& dispatcher) {
    return simulate(lowered("model.hidden=512 model.moe.experts=16 model.moe.top_k=8 parallelism.dispatcher=" + dispatcher))
        .timeline.makespan();
  };
  EXPECT_LT(time("deepep"), time("nccl"));
}

}  // namespace
}  // namespace tandem::studies::deepep_test
