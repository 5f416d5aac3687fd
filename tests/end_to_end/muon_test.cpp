// Muon: the sharded step is the unsharded one, in what each matrix changes by, and costs what its products and states cost.

#include "scenarios/lowering/muon.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "runtime/host/unsharded.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "studies/step/executed_step.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::muon_test {
namespace {

std::vector<std::string> by_muon(const std::string& fields) { return words("training.optimizer=muon " + fields); }

class Muon : public testing::TestWithParam<const char*> {};

// A weight changes by a thousandth of its size, of which fp32 leaves four digits.
TEST_P(Muon, ShardedStepChangesWeightsAsTheUnshardedOne) {
  const Scenario scenario = tiny_model(by_muon(GetParam()));
  EXPECT_LT(largest_difference(scenario), 1e-5);
  EXPECT_LT(largest_difference_of_changes(scenario), 2e-3);
}

TEST_P(Muon, FoldedTimesAreTheUnfoldedOnes) { EXPECT_GE(expect_equal_when_folded(tiny_cluster(by_muon(GetParam()))), 1U); }

const std::string moe = "model.moe.experts=4 model.moe.top_k=2 model.moe.ffn=24 ";
const std::string experts = moe + "model.moe.shared_experts=1 parallelism.dp=4 parallelism.ep=2";
const std::string shared_out = moe + "parallelism.tp=2 parallelism.sp=true parallelism.etp=2 parallelism.dp=2 parallelism.ep=2";
const std::string latent =
    "model.kv_heads=8 model.mla.q_rank=12 model.mla.kv_rank=16 model.mla.rope_dim=4 model.mla.nope_dim=6 model.mla.v_dim=5 "
    "model.mtp_depth=1 parallelism.tp=2 parallelism.sp=true parallelism.dp=2";

INSTANTIATE_TEST_SUITE_P(
    Meshes, Muon,
    testing::Values("parallelism.dp=2 parallelism.zero=0", "parallelism.dp=4", "parallelism.dp=8 parallelism.zero=2",
                    "parallelism.dp=2 parallelism.cp=2 training.bucket_MB=0.001", "parallelism.tp=4",
                    "parallelism.tp=2 parallelism.sp=true parallelism.pp=2 parallelism.dp=2",
                    "parallelism.tp=8 model.kv_heads=2 parallelism.zero=0 parallelism.dp=2",
                    "parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b parallelism.dp=4",
                    "model.norm=layer model.gated=false model.linear_bias=true model.tied_embeddings=true parallelism.tp=2 "
                    "parallelism.pp=2",
                    experts.c_str(), shared_out.c_str(), latent.c_str()));

// Shards as matrices of their own: the reference orthogonalizes the same blocks of each whole matrix.
INSTANTIATE_TEST_SUITE_P(
    Blockwise, Muon,
    testing::Values("training.muon_tp=blockwise parallelism.tp=4", "training.muon_tp=blockwise parallelism.dp=2",
                    "training.muon_tp=blockwise parallelism.tp=2 parallelism.sp=true parallelism.pp=2 parallelism.dp=2",
                    "training.muon_tp=blockwise parallelism.tp=8 model.kv_heads=2 parallelism.zero=0 parallelism.dp=2",
                    "training.muon_tp=blockwise model.moe.experts=4 model.moe.top_k=2 model.moe.ffn=24 parallelism.tp=2 "
                    "parallelism.sp=true parallelism.etp=2 parallelism.dp=2 parallelism.ep=2",
                    "training.muon_tp=blockwise model.moe.experts=4 model.moe.top_k=2 model.moe.ffn=24 parallelism.etp=2 "
                    "parallelism.dp=4 parallelism.ep=2"));

TEST(MuonOfLocalSteps, AveragesItsWeights) {
  EXPECT_LT(largest_difference(tiny_model(by_muon("parallelism.dp=2 parallelism.tp=2 parallelism.zero=0 training.sync_every=2"))),
            1e-5);
}

/// Those of the whole model.
std::map<std::string, Shape> matrices(const Dag& dag) {
  std::map<std::string, Shape> found;
  for (const ParameterShard& shard : dag.shards)
    if (is_muon_matrix(shard.tensor)) found.emplace(shard.tensor, Shape(shard.tensor_rows, shard.tensor_columns));
  return found;
}

std::map<OpKind, std::size_t> operations(const Dag& dag) {
  std::map<OpKind, std::size_t> counts;
  for (const Task& task : dag.tasks)
    if (task.phase == Phase::optimizer) ++counts[task.op];
  return counts;
}

double flops_of_optimizer(const Dag& dag, RankIndex rank) {
  double flops = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id)
    if (dag.tasks[id].phase == Phase::optimizer && dag.tasks[id].rank == rank && !is_communication(dag.tasks[id].op))
      flops += static_cast<double>(cost_of(dag, id).flops);
  return flops;
}

Dag lowered(const std::string& fields) {
  const Scenario scenario = tiny_cluster(by_muon(fields));
  return lower(scenario, make_world(scenario, false));
}

TEST(MuonMatrices, AreThoseInsideTheLayers) {
  const auto found = matrices(lowered("parallelism.dp=1"));
  EXPECT_EQ(found.size(), 4U * 7U);  // q, k, v, output, gate, up, down
  EXPECT_TRUE(found.contains("layer0.q"));
  for (const char* other : {"embedding", "head", "positions", "final_norm.weight", "layer0.attention_norm.weight",
                            "layer0.qkv.bias", "layer0.mamba_conv_x.taps", "layer0.mamba_a_log.weight"})
    EXPECT_FALSE(is_muon_matrix(other)) << other;
  EXPECT_TRUE(is_muon_matrix("mtp1.projection"));
  EXPECT_TRUE(is_muon_matrix("layer3.expert7.down"));
}

// Five steps, each two products of the matrix with one of its smaller side d, and one of d x d: 4 m n d + 2 d^3.
TEST(MuonCost, CountsTheProductsOfNewtonSchulz) {
  const Dag dag = lowered("parallelism.dp=1");
  double flops = 0;
  for (const auto& [name, shape] : matrices(dag)) {
    const auto m = static_cast<double>(shape[0]), n = static_cast<double>(shape[1]), d = std::min(m, n);
    flops += 5 * (4 * m * n * d + 2 * d * d * d);
  }
  EXPECT_DOUBLE_EQ(flops_of_optimizer(dag, 0), flops);
}

// Of rows shared out by two, A is of the columns' size and each has half of the rows; of columns, the other way round. Keys and
// values, which are wide, are gathered.
TEST(MuonCost, ShardsShareTheProductsWithTheMatrix) {
  const Dag dag = lowered("parallelism.tp=2");
  double flops = 0;
  for (const auto& [name, shape] : matrices(dag)) {
    const auto m = static_cast<double>(shape[0]), n = static_cast<double>(shape[1]);
    const bool by_columns = name.ends_with("output") || name.ends_with("down");
    const bool gathered = !by_columns && m < n;
    EXPECT_EQ(gathered, name.ends_with(".k") || name.ends_with(".v")) << name;
    const double d = by_columns || gathered ? m : n;
    flops += 5 * ((gathered ? 4 : 2) * m * n * d + 2 * d * d * d);
  }
  EXPECT_DOUBLE_EQ(flops_of_optimizer(dag, 0), flops);
  EXPECT_DOUBLE_EQ(flops_of_optimizer(dag, 1), flops);
}

// Without shards it is the same step, with them another.
TEST(MuonBlockwise, IsAnotherStepWhereRanksShareMatrices) {
  const auto weights = [](const std::string& fields) {
    ExecutedStep step(tiny_model(by_muon(fields)), "test", {.rounds = false});
    step.execute();
    std::map<std::string, std::vector<float>> values;
    for (const auto& [name, tensor] : gather_unsharded(step.memory()).weights) values[name] = tensor.values;
    return values;
  };
  EXPECT_EQ(weights("parallelism.dp=2"), weights("parallelism.dp=2 training.muon_tp=blockwise"));
  EXPECT_NE(weights("parallelism.tp=2"), weights("parallelism.tp=2 training.muon_tp=blockwise"));
}

// Ranks send nothing for it, and each multiplies its shards alone.
TEST(MuonBlockwise, SendsNothingAndMultipliesShards) {
  const Dag dag = lowered("parallelism.tp=2 training.muon_tp=blockwise");
  double flops = 0;
  for (const auto& [name, shape] : matrices(dag)) {
    const bool by_columns = name.ends_with("output") || name.ends_with("down");
    const double m = static_cast<double>(shape[0]) / (by_columns ? 1 : 2),
                 n = static_cast<double>(shape[1]) / (by_columns ? 2 : 1);
    const double d = std::min(m, n);
    flops += 5 * (4 * m * n * d + 2 * d * d * d);
  }
  EXPECT_DOUBLE_EQ(flops_of_optimizer(dag, 0), flops);
  for (TaskId id = 0; id < dag.tasks.size(); ++id)
    EXPECT_FALSE(is_communication(dag.tasks[id].op) && dag.name_of_task(id).starts_with("muon")) << dag.name_of_task(id);
}

Bytes states(const Dag& dag) {
  Bytes bytes = 0;
  for (BufferId id = 0; id < dag.buffers.size(); ++id)
    if (dag.buffers[id].kind == BufferKind::optimizer && dag.buffers[id].base == id) bytes += dag.buffers[id].bytes();
  return bytes;
}

// The master copy and the momentum, where Adam has a second moment, too. The states of a matrix are on its owner alone.
TEST(MuonStates, TakeEightBytesOfAMatrixAndTwelveOfAllElse) {
  const Dag dag = lowered("parallelism.dp=1");
  std::int64_t of_matrices = 0;
  for (const auto& [name, shape] : matrices(dag)) of_matrices += shape.elements();
  const Bytes whole = 8 * of_matrices + 12 * (dag.info.parameters - of_matrices);
  EXPECT_EQ(states(dag), whole);
  EXPECT_EQ(states(lowered("parallelism.dp=2 parallelism.zero=0")), 2 * whole);
  const Bytes padding = 12 * 4 * 100;  // of norms, table and head, to slices of equal length
  EXPECT_GE(states(lowered("parallelism.dp=4")), whole);
  EXPECT_LT(states(lowered("parallelism.dp=4")), whole + padding);
}

TEST(MuonOwners, UpdateEveryMatrixOnce) {
  const std::size_t all = matrices(lowered("parallelism.dp=1")).size();
  for (const auto& [fields, updates] : std::map<std::string, std::size_t>{{"parallelism.dp=4", all},
                                                                          {"parallelism.dp=4 parallelism.zero=0", 4 * all},
                                                                          {"parallelism.dp=8 parallelism.zero=2", all},
                                                                          {"parallelism.dp=2 parallelism.tp=2", 2 * all},
                                                                          {"parallelism.dp=4 parallelism.pp=2", all}}) {
    auto counts = operations(lowered(fields));
    EXPECT_EQ(counts[OpKind::muon_update], updates) << fields;
    EXPECT_EQ(counts[OpKind::muon_momentum], updates) << fields;
    EXPECT_EQ(counts[OpKind::gemm], 3 * 5 * updates) << fields;
  }
}

// 64 data-parallel ranks own at most as many different shares as there are weights.
TEST(MuonOwners, WithoutMatricesFoldIntoOneClass) {
  const Scenario scenario = tiny_cluster(by_muon("parallelism.dp=512 training.global_batch=512 model.layers=1"));
  const std::size_t classes = make_world(scenario, true).ranks.size();
  EXPECT_GT(classes, 4U);                    // qkv, output, gate and up, down, none
  EXPECT_LE(classes, 8U * (3U * 11U + 1U));  // a leader of a node may be a class apart
}

}  // namespace
}  // namespace tandem::studies::muon_test
