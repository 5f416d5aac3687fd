// Adafactor: the sharded step is the unsharded one, in what each tensor changes by, wherever slices and shards cut it; its states
// and what it adds up are closed forms.

#include "scenarios/lowering/adafactor.h"

#include <gtest/gtest.h>

#include <map>

#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::adafactor_test {
namespace {

std::vector<std::string> by_adafactor(const std::string& fields) { return words("training.optimizer=adafactor " + fields); }

class Adafactor : public testing::TestWithParam<const char*> {};

// A step changes a weight by a hundredth of its size.
TEST_P(Adafactor, ShardedStepIsTheUnshardedOne) {
  const Scenario scenario = tiny_cluster(by_adafactor(GetParam()));
  EXPECT_LT(largest_difference(scenario), 1e-5);
  EXPECT_LT(largest_difference_of_changes(scenario), 2e-3);
}

TEST_P(Adafactor, FoldedTimesAreTheUnfoldedOnes) {
  EXPECT_GE(expect_equal_when_folded(tiny_cluster(by_adafactor(GetParam()))), 1U);
}

const std::string moe = "model.moe.experts=4 model.moe.top_k=2 model.moe.ffn=24 ";
const std::string experts = moe + "model.moe.shared_experts=1 parallelism.dp=4 parallelism.ep=2";
const std::string shared_out = moe + "parallelism.tp=2 parallelism.sp=true parallelism.etp=2 parallelism.dp=2 parallelism.ep=2";
const std::string latent =
    "model.kv_heads=8 model.mla.q_rank=12 model.mla.kv_rank=16 model.mla.rope_dim=4 model.mla.nope_dim=6 model.mla.v_dim=5 "
    "model.mtp_depth=1 parallelism.tp=2 parallelism.sp=true parallelism.dp=2";
const std::string states =
    "model.layer_types=[mamba,full_attention] model.mamba.heads=8 model.mamba.head_dim=64 model.mamba.state=6 "
    "model.mamba.groups=2 "
    "model.mamba.chunk=4 parallelism.tp=2 parallelism.dp=2 parallelism.zero=3";

INSTANTIATE_TEST_SUITE_P(
    Meshes, Adafactor,
    testing::Values("parallelism.dp=2 parallelism.zero=0", "parallelism.dp=4", "parallelism.dp=8 parallelism.zero=2",
                    "parallelism.dp=2 parallelism.zero=3", "parallelism.dp=4 parallelism.zero=3 parallelism.hsdp=2",
                    "parallelism.dp=4 training.hierarchical_all_reduce=true cluster.gpus_per_node=2 cluster.nics_per_node=2",
                    "parallelism.dp=2 parallelism.cp=2 training.bucket_MB=0.001", "parallelism.tp=4",
                    "parallelism.tp=2 parallelism.sp=true parallelism.pp=2 parallelism.dp=2",
                    "parallelism.tp=8 model.kv_heads=2 parallelism.zero=0 parallelism.dp=2",
                    "parallelism.tp=8 model.kv_heads=2 parallelism.zero=2 parallelism.dp=2",
                    "parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b parallelism.dp=4",
                    "model.norm=layer model.gated=false model.linear_bias=true model.tied_embeddings=true parallelism.tp=2 "
                    "parallelism.pp=2",
                    experts.c_str(), shared_out.c_str(), latent.c_str(), states.c_str()));

TEST(AdafactorOfLocalSteps, AveragesItsWeights) {
  EXPECT_LT(
      largest_difference(tiny_model(by_adafactor("parallelism.dp=2 parallelism.tp=2 parallelism.zero=0 training.sync_every=2"))),
      1e-5);
}

Dag lowered(const std::string& fields) {
  const Scenario scenario = tiny_cluster(by_adafactor(fields));
  return lower(scenario, make_world(scenario, false));
}

Bytes states_of(const Dag& dag, RankIndex rank) {
  Bytes bytes = 0;
  for (BufferId id = 0; id < dag.buffers.size(); ++id) {
    const Buffer& buffer = dag.buffers[id];
    if (buffer.kind == BufferKind::optimizer && buffer.base == id && buffer.rank == rank) bytes += buffer.bytes();
  }
  return bytes;
}

/// Of the unsharded model.
struct Sizes {
  std::int64_t vectors = 0;  ///< elements
  std::int64_t factors = 0;  ///< rows, columns, and a mean for each matrix
  std::int64_t numbers = 0;  ///< of rows and columns alone
};

Sizes sizes_of_model() {
  const Dag dag = lowered("parallelism.dp=1");
  Sizes sizes;
  std::map<std::string, Shape> tensors;
  for (const ParameterShard& shard : dag.shards) tensors.emplace(shard.tensor, Shape(shard.tensor_rows, shard.tensor_columns));
  for (const auto& [name, shape] : tensors) {
    if (is_factored(name)) {
      sizes.numbers += shape[0] + shape[1];
      sizes.factors += shape[0] + shape[1] + 1;
    } else {
      sizes.vectors += shape.elements();
    }
  }
  return sizes;
}

// Four bytes of each parameter for the weights that are updated, four of each row and column of a matrix, four of each element of
// a vector. ZeRO shares out the first and the last.
TEST(AdafactorStates, TakeFourBytesOfAParameterAndFactors) {
  const Dag dag = lowered("parallelism.dp=1");
  const Sizes sizes = sizes_of_model();
  EXPECT_EQ(states_of(dag, 0), 4 * dag.info.parameters + 4 * (sizes.factors + sizes.vectors));
  const Dag sharded = lowered("parallelism.dp=4");
  const Bytes share = (dag.info.parameters + sizes.vectors) + 4 * sizes.factors;
  const Bytes padding = 2 * 4 * 4 * 8;  // of a few buckets' slices to equal length, in weights and variances
  EXPECT_GE(states_of(sharded, 0), share);
  EXPECT_LE(states_of(sharded, 0), share + padding);
}

Bytes sent_in_optimizer(const Dag& dag, Axis axis, RankIndex rank) {
  Bytes bytes = 0;
  for (const Task& task : dag.tasks)
    if (dag.names[task.name] == "adafactor" && is_communication(task.op) && task.axis == axis && task.rank == rank)
      bytes += dag.groups[task.group].bytes;
  return bytes;
}

std::size_t collectives_in_optimizer(const Dag& dag, Axis axis, RankIndex rank) {
  return static_cast<std::size_t>(std::ranges::count_if(dag.tasks, [&](const Task& task) {
    return dag.names[task.name] == "adafactor" && is_communication(task.op) && task.axis == axis && task.rank == rank;
  }));
}

// Over owners of slices: the sums of all rows and columns, and two norms of each tensor.
TEST(AdafactorSums, TravelInTwoCollectivesOverOwners) {
  const Dag whole = lowered("parallelism.dp=1"), dag = lowered("parallelism.dp=4");
  std::size_t tensors = 0;
  for (const ParameterShard& shard : whole.shards) tensors += shard.row == 0 && shard.column == 0 ? 1 : 0;
  EXPECT_EQ(collectives_in_optimizer(dag, Axis::dp, 0), 2U);
  EXPECT_EQ(sent_in_optimizer(dag, Axis::dp, 0), 4 * (sizes_of_model().numbers + 2 * static_cast<std::int64_t>(tensors)));
  EXPECT_EQ(collectives_in_optimizer(lowered("parallelism.dp=4 parallelism.zero=0"), Axis::dp, 0), 0U);
  EXPECT_EQ(collectives_in_optimizer(whole, Axis::tp, 0), 0U);
}

// Over tensor-parallel ranks: of each matrix the sums along the side that is cut, which is the columns' where rows are shared
// out, and the norms of all tensors.
TEST(AdafactorSums, OverShardsAreThoseAlongTheCutSide) {
  const Dag dag = lowered("parallelism.tp=2");
  std::int64_t numbers = 0;
  for (const ParameterShard& shard : dag.shards) {
    if (dag.buffers[shard.buffer].rank != 0) continue;
    numbers += 2;
    if (!is_factored(shard.tensor)) continue;
    if (shard.rows < shard.tensor_rows) numbers += shard.columns;
    if (shard.columns < shard.tensor_columns) numbers += shard.rows;
  }
  EXPECT_EQ(sent_in_optimizer(dag, Axis::tp, 0), 4 * numbers);
}

// Slices cut tensors elsewhere on each rank, and cost the same.
TEST(AdafactorOwners, FoldIntoOneClass) {
  const Scenario scenario = tiny_cluster(by_adafactor("parallelism.dp=64 training.global_batch=64 parallelism.zero=2"));
  const Scenario by_adam = tiny_cluster(words("parallelism.dp=64 training.global_batch=64 parallelism.zero=0"));
  EXPECT_LE(make_world(scenario, true).ranks.size(), make_world(by_adam, true).ranks.size());
}

}  // namespace
}  // namespace tandem::studies::adafactor_test
