// Exchanges of experts beside another pass: the step of the unsharded model, folded or not, with the work of the step that hides
// nothing, in the order that DeepSeek-V3 published.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::expert_overlap_test {
namespace {

const std::string experts = "model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 model.moe.shared_experts=1 ";
const std::string dualpipe = "training.schedule=dualpipe parallelism.pp=2 training.global_batch=16 model.layers=4 ";
const std::string interleaved = "training.schedule=interleaved-1f1b parallelism.pp=2 parallelism.vpp=2 model.layers=4 ";
const std::string two_ranks = "parallelism.dp=2 parallelism.ep=2 ";

Scenario hidden(const std::string& overrides) { return tiny_cluster(words(experts + overrides + " training.overlap.ep=true")); }
Scenario exposed(const std::string& overrides) { return tiny_cluster(words(experts + overrides)); }

class ExpertOverlap : public testing::TestWithParam<std::string> {};

TEST_P(ExpertOverlap, ShardedStepIsTheUnshardedStep) { EXPECT_LT(largest_difference(hidden(GetParam())), 1e-5); }

TEST_P(ExpertOverlap, FoldedTimesAreTheUnfoldedOnes) { EXPECT_GE(expect_equal_when_folded(hidden(GetParam())), 1U); }

/// Kernels and collectives by what they are, whatever their order.
std::multiset<std::tuple<std::string, std::int32_t, Bytes>> work_of(const Scenario& scenario) {
  const Dag dag = lower(scenario, make_world(scenario, true));
  std::multiset<std::tuple<std::string, std::int32_t, Bytes>> work;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    const Bytes bytes = is_communication(task.op) ? dag.groups[task.group].bytes : 0;
    work.emplace(std::string(dag.name_of_task(id)), task.micro_batch, bytes);
  }
  return work;
}

TEST_P(ExpertOverlap, DoesTheSameWork) { EXPECT_EQ(work_of(hidden(GetParam())), work_of(exposed(GetParam()))); }

INSTANTIATE_TEST_SUITE_P(
    Schedules, ExpertOverlap,
    testing::Values(dualpipe + two_ranks, dualpipe + two_ranks + "parallelism.zero=2 training.overlap.dp=false",
                    dualpipe + two_ranks + "training.overlap.pp=false", dualpipe + two_ranks + "model.moe.shared_experts=0",
                    dualpipe + two_ranks + "parallelism.pp=4 training.global_batch=32 model.layers=8 model.mtp_depth=1",
                    interleaved + two_ranks, interleaved + two_ranks + "training.overlap.pp=false parallelism.zero=0",
                    interleaved + two_ranks + "parallelism.vpp=3 model.layers=6 training.global_batch=16",
                    dualpipe + two_ranks + "training.gates_at_experts=true", two_ranks + "training.global_batch=8",
                    two_ranks + "parallelism.dp=4 model.moe.every=2 model.layers=4"));

INSTANTIATE_TEST_SUITE_P(
    Meshes, ExpertOverlap,
    testing::Values(dualpipe + "parallelism.tp=2 parallelism.sp=true " + two_ranks,
                    dualpipe + "parallelism.tp=2 parallelism.ep=2 model.moe.shared_experts=0",
                    interleaved + "parallelism.cp=2 " + two_ranks,
                    interleaved + "parallelism.cp=2 parallelism.cp_method=ulysses " + two_ranks,
                    interleaved + "parallelism.tp=2 parallelism.sp=true parallelism.etp=2 parallelism.dp=2 parallelism.ep=2",
                    "parallelism.ep=2 parallelism.expert_axis=own parallelism.dp=2",
                    dualpipe + two_ranks + "model.moe.first_dense_layers=1 model.moe.load.zipf=1"));

INSTANTIATE_TEST_SUITE_P(Recompute, ExpertOverlap,
                         testing::Values(dualpipe + two_ranks + "training.recompute=full",
                                         dualpipe + two_ranks + "training.recompute=[norm,activation]",
                                         interleaved + two_ranks + "training.recompute=[mlp,attention]",
                                         interleaved + two_ranks + "training.precision=fp8",
                                         dualpipe + two_ranks + "training.precision=fp8 training.recompute=[norm,activation]"));

/// What a rank issues on its expert stream beside a pair in the middle of the step, from the first of the backward's exchanges
/// on.
std::vector<std::pair<std::string, Phase>> exchanges_of_pair(const Dag& dag, std::int32_t forward, std::int32_t backward) {
  std::vector<std::pair<std::string, Phase>> exchanges;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (task.op != OpKind::all_to_all || dag.ranks[task.rank].pp != 0) continue;
    const bool forth = task.phase == Phase::forward;
    if (task.micro_batch == (forth ? forward : backward)) exchanges.emplace_back(std::string(dag.name_of_task(id)), task.phase);
  }
  return exchanges;
}

Dag lowered_pairs(const std::string& overrides) {
  const Scenario scenario = hidden(two_ranks + "model.layers=2 training.global_batch=8 " + overrides);
  return lower(scenario, make_world(scenario, true));
}

// DeepSeek-V3, figure 4: COMBINE(B), DISPATCH(F), DISPATCH(B), COMBINE(F), and so on. There, too, COMBINE(B) is the backward of
// the combine.
TEST(ExpertOverlapOrder, IsThatOfDeepSeek) {
  const Dag dag = lowered_pairs("");
  const Phase f = Phase::forward, b = Phase::backward_input;
  const std::vector<std::pair<std::string, Phase>> expected = {{"combine", b}, {"dispatch", f}, {"dispatch", b}, {"combine", f},
                                                               {"combine", b}, {"dispatch", f}, {"dispatch", b}, {"combine", f}};
  EXPECT_EQ(exchanges_of_pair(dag, 2, 1), expected);
}

// Gates travel right before the rows they weight, and their gradients before those of the rows: no turn ends between them.
TEST(ExpertOverlapOrder, SendsGatesBeforeTheirRows) {
  const Dag dag = lowered_pairs("training.gates_at_experts=true");
  const Phase f = Phase::forward, b = Phase::backward_input;
  const std::vector<std::pair<std::string, Phase>> of_layer = {{"combine", b},        {"dispatch gates", f}, {"dispatch", f},
                                                               {"dispatch gates", b}, {"dispatch", b},       {"combine", f}};
  std::vector<std::pair<std::string, Phase>> expected = of_layer;
  expected.insert(expected.end(), of_layer.begin(), of_layer.end());
  EXPECT_EQ(exchanges_of_pair(dag, 2, 1), expected);
}

/// The kernels between an exchange's start and what waits for it: those that may hide it.
int kernels_beside(const Dag& dag, TaskId exchange) {
  const Task& task = dag.tasks[exchange];
  int kernels = 0;
  for (TaskId id = exchange + 1; id < dag.tasks.size() && dag.tasks[id].rank == task.rank; ++id) {
    const auto successors = dag.graph.successors(exchange);
    if (std::ranges::find(successors, id) != successors.end()) break;
    if (dag.tasks[id].stream == Stream::compute) ++kernels;
  }
  return kernels;
}

// In a pair, kernels lie between each exchange and the first that needs what it brings; without overlap, none do.
TEST(ExpertOverlapOrder, PutsKernelsBesideEachExchange) {
  const std::string mesh = dualpipe + two_ranks;
  for (const bool hides : {true, false}) {
    const Scenario scenario = hides ? hidden(mesh) : exposed(mesh);
    const Dag dag = lower(scenario, make_world(scenario, true));
    int exchanges = 0, beside_kernels = 0;
    for (TaskId id = 0; id < dag.tasks.size(); ++id) {
      if (dag.tasks[id].op != OpKind::all_to_all) continue;
      ++exchanges;
      beside_kernels += kernels_beside(dag, id) > 0 ? 1 : 0;
    }
    ASSERT_GT(exchanges, 100);
    if (hides) {
      EXPECT_GT(beside_kernels, exchanges * 3 / 4);
    } else {
      EXPECT_EQ(beside_kernels, 0);
    }
  }
}

}  // namespace
}  // namespace tandem::studies::expert_overlap_test
