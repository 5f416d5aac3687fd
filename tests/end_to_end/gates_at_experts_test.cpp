// Gates that weight rows where the experts are: the step that weights what returns, with less to keep.

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "runtime/analysis/memory.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/token_routing.h"
#include "scenarios/mesh/world.h"
#include "sim/simulate.h"
#include "studies/step/executed_step.h"
#include "studies/step/verification.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::gates_at_experts_test {
namespace {

const std::string experts = "model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 ";
const std::string at_experts = " training.gates_at_experts=true";

class GatesAtExperts : public testing::TestWithParam<const char*> {};

TEST_P(GatesAtExperts, IsTheUnshardedStepWeightedOnReturn) {
  ExecutedStep step(tiny_model(words(experts + GetParam() + at_experts)), "test");
  step.execute();
  const StepDifference difference = compare_with_unsharded(step, tiny_model(words(experts + GetParam())));
  EXPECT_GT(difference.reference_loss, 1.0);
  EXPECT_LT(difference.largest(), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, GatesAtExperts,
    testing::Values("", "model.gated=false model.moe.top_k=1", "parallelism.dp=2 parallelism.ep=2",
                    "parallelism.dp=8 parallelism.ep=8 parallelism.zero=2", "parallelism.dp=2 parallelism.etp=2",
                    "parallelism.tp=2 parallelism.sp=true parallelism.dp=2 parallelism.ep=2 parallelism.etp=2",
                    "parallelism.tp=2 parallelism.dp=2 parallelism.ep=2 parallelism.etp=2 model.moe.capacity_factor=0.75 "
                    "parallelism.zero=3",
                    "parallelism.ep=2 parallelism.dp=2 parallelism.expert_axis=own parallelism.tp=2 parallelism.etp=2",
                    "parallelism.cp=2 parallelism.dp=2 parallelism.ep=4 model.moe.capacity_factor=1 model.moe.balance_loss=3",
                    "parallelism.dp=2 parallelism.ep=2 parallelism.pp=2 training.schedule=zb-h1 model.moe.shared_experts=1",
                    "parallelism.dp=4 parallelism.ep=4 model.moe.load.zipf=1.2 model.moe.top_k=3 model.moe.every=2",
                    "parallelism.dp=2 parallelism.ep=2 parallelism.pp=2 model.mtp_depth=1 training.micro_batch=2"));

INSTANTIATE_TEST_SUITE_P(
    Recompute, GatesAtExperts,
    testing::Values("parallelism.dp=2 parallelism.ep=2 training.recompute=[activation]",
                    "parallelism.tp=2 parallelism.dp=2 parallelism.ep=2 parallelism.etp=2 training.recompute=[norm,activation] "
                    "model.moe.capacity_factor=0.75",
                    "parallelism.dp=2 parallelism.ep=2 training.recompute=[mlp,activation] model.moe.shared_experts=1",
                    "parallelism.dp=2 parallelism.ep=2 parallelism.pp=2 training.schedule=zb-h1 training.recompute=full"));

class FoldedGatesAtExperts : public testing::TestWithParam<const char*> {};

TEST_P(FoldedGatesAtExperts, TimesAreTheUnfolded) {
  EXPECT_GT(expect_equal_when_folded(tiny_cluster(words(experts + GetParam() + at_experts))), 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, FoldedGatesAtExperts,
    testing::Values("parallelism.dp=16 parallelism.ep=8 training.global_batch=16",
                    "parallelism.dp=4 parallelism.tp=4 parallelism.ep=2 parallelism.etp=2 model.moe.load.zipf=1",
                    "parallelism.dp=4 parallelism.ep=4 parallelism.dispatcher=deepep training.precision=fp8 "
                    "cluster.gpus_per_node=2 cluster.nics_per_node=2 training.recompute=[activation]"));

Dag lowered(const std::string& overrides) {
  const Scenario scenario = tiny_cluster(words(experts + overrides));
  return lower(scenario, make_world(scenario, true));
}

/// Bytes of rank 0 that its forwards leave to its backwards.
Bytes kept(const Dag& dag) {
  std::map<BufferId, std::pair<bool, bool>> touched;  // by forwards and by backwards
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (task.rank != 0) continue;
    for (const Operand& operand : dag.operands_of(id)) {
      const Buffer& buffer = dag.buffers[operand.buffer];
      if (is_persistent(buffer.kind)) continue;
      auto& [forward, backward] = touched[buffer.base];
      (task.phase == Phase::forward ? forward : backward) = true;
    }
  }
  Bytes bytes = 0;
  for (const auto& [buffer, by] : touched)
    if (by.first && by.second) bytes += dag.buffers[buffer].bytes();
  return bytes;
}

Bytes peak(const Dag& dag) { return memory_use(dag, simulate(dag).timeline)[0].peak(); }

/// What a layer and micro-batch need no longer keep: the rows that returned and the gates, but for the weights of the rows that
/// the experts of the rank have.
Bytes saved(const Scenario& scenario) {
  const ParallelismSpec& p = scenario.parallelism;
  const RoutingAttributes routing = routing_of(scenario);
  const Bytes rows = Bytes{routing.parts} * routing.groups * routing.block;
  const Bytes choices = scenario.training.sequence * scenario.training.micro_batch / (p.cp * p.tp) * routing.top_k;
  Bytes at_experts = 0;
  for (std::size_t e = 0; e < routing.slots.size() / static_cast<std::size_t>(p.ep); ++e)
    at_experts += Bytes{routing.slots[e]} * routing.groups * p.ep * p.etp;
  return rows * scenario.model.hidden * size_of(scenario.training.storage()) + 4 * (choices - at_experts);
}

class KeptByGatesAtExperts : public testing::TestWithParam<const char*> {};

// With gpipe all micro-batches are under way when the logits are there, which with so large a vocabulary is the peak.
TEST_P(KeptByGatesAtExperts, IsLessByTheReturnedRows) {
  const std::string overrides = std::string("training.schedule=gpipe model.vocab=65536 training.global_batch=8 ") + GetParam();
  const Dag on_return = lowered(overrides), there = lowered(overrides + at_experts);
  const Scenario scenario = tiny_cluster(words(experts + overrides));
  const std::int64_t passes = scenario.model.layers * scenario.training.micro_batches(scenario.parallelism);
  ASSERT_GT(saved(scenario), 0);
  EXPECT_EQ(kept(on_return) - kept(there), passes * saved(scenario));
  EXPECT_EQ(peak(on_return) - peak(there), passes * saved(scenario));
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, KeptByGatesAtExperts,
    testing::Values("parallelism.dp=2 parallelism.ep=2", "parallelism.dp=2 parallelism.ep=2 training.recompute=[activation]",
                    "parallelism.dp=4 parallelism.ep=4 training.precision=bf16 parallelism.zero=0",
                    "parallelism.dp=4 parallelism.ep=2 parallelism.etp=2 training.precision=bf16",
                    "parallelism.tp=2 parallelism.sp=true parallelism.dp=2 parallelism.ep=4 model.moe.capacity_factor=1.5",
                    "parallelism.dp=2 parallelism.ep=2 model.moe.capacity_factor=4 training.micro_batch=2"));

// Even loads without capacity: as many rows as choices, and the weights of rows take the place of the gates.
TEST(KeptByGatesAtExperts, IsLessByExactlyTheReturnedRowsWhereLoadsAreEven) {
  const Scenario scenario = tiny_cluster(words(experts + "parallelism.dp=2 parallelism.ep=2 training.precision=bf16"));
  EXPECT_EQ(saved(scenario), 16 * 2 * 32 * 2);
}

/// All-to-alls of one layer's forward or backward, in order.
std::vector<std::pair<std::string, Bytes>> exchanges(const Dag& dag, Phase phase) {
  std::vector<std::pair<std::string, Bytes>> found;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (task.op == OpKind::all_to_all && task.rank == 0 && task.layer == 0 && task.micro_batch == 0 && task.phase == phase)
      found.emplace_back(dag.name_of_task(id), dag.groups[task.group].bytes);
  }
  return found;
}

using Exchanges = std::vector<std::pair<std::string, Bytes>>;
const std::string two_ranks = "parallelism.dp=2 parallelism.ep=2 training.precision=bf16 ";
constexpr Bytes rows = 16 * 2, of_row = 32 * 2, of_gate = 4;

TEST(ExchangeOfGates, HasAnAllToAllOfItsOwnInNccl) {
  const Dag dag = lowered(two_ranks + at_experts);
  const Exchanges forward = {{"dispatch gates", rows * of_gate}, {"dispatch", rows * of_row}, {"combine", rows * of_row}};
  const Exchanges backward = {{"combine", rows * of_row}, {"dispatch gates", rows * of_gate}, {"dispatch", rows * of_row}};
  EXPECT_EQ(exchanges(dag, Phase::forward), forward);
  EXPECT_EQ(exchanges(dag, Phase::backward_input), backward);
}

TEST(ExchangeOfGates, IsPartOfTheRowsInDeepEp) {
  const Dag dag = lowered(two_ranks + "parallelism.dispatcher=deepep" + at_experts);
  const Bytes both = rows * (of_row + of_gate);
  const Exchanges forward = {{"dispatch gates", 0}, {"dispatch", both}, {"combine", rows * of_row}};
  const Exchanges backward = {{"combine", rows * of_row}, {"dispatch gates", 0}, {"dispatch", both}};
  EXPECT_EQ(exchanges(dag, Phase::forward), forward);
  EXPECT_EQ(exchanges(dag, Phase::backward_input), backward);
  const Timeline timeline = simulate(dag).timeline;
  int moves = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const OpKind op = dag.tasks[id].op;
    const bool carried = op == OpKind::permute || op == OpKind::permute_backward || dag.name_of_task(id) == "dispatch gates";
    if (!carried || op == OpKind::regroup) continue;
    EXPECT_EQ(timeline.duration(id), 0) << dag.name_of_task(id);
    ++moves;
  }
  EXPECT_GT(moves, 0);
}

}  // namespace
}  // namespace tandem::studies::gates_at_experts_test
