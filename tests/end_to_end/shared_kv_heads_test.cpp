// More tensor-parallel ranks than key-value heads: the sharded step is the unsharded one, folded or not, and a rank keeps,
// computes and moves what one head takes.

#include <gtest/gtest.h>

#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"
#include "tests/end_to_end/volumes.h"

namespace tandem::studies::shared_kv_heads_test {
namespace {

const std::string two_ranks = "model.kv_heads=2 parallelism.tp=4 ";   // share each of two heads
const std::string four_ranks = "model.kv_heads=2 parallelism.tp=8 ";  // share each of two heads
const std::string all_ranks = "model.kv_heads=1 parallelism.tp=4 ";   // share the only head: multi-query attention
const std::string zb_h1 = "training.schedule=zb-h1 parallelism.pp=2 ";
const std::string zb_v = "training.schedule=zb-v parallelism.vpp=2 parallelism.pp=2 ";
const std::string dualpipe = "training.schedule=dualpipe parallelism.pp=2 ";
const std::string sp = "parallelism.sp=true ";

class SharedKvHeads : public testing::TestWithParam<std::string> {};

// As in equivalence_test: rounding alone differs.
TEST_P(SharedKvHeads, ShardedStepIsTheUnshardedStep) { EXPECT_LT(largest_difference(tiny_cluster(words(GetParam()))), 1e-5); }

TEST_P(SharedKvHeads, FoldedTimesAreTheUnfoldedOnes) { EXPECT_GE(expect_equal_when_folded(tiny_cluster(words(GetParam()))), 1U); }

INSTANTIATE_TEST_SUITE_P(Meshes, SharedKvHeads,
                         testing::Values(two_ranks, two_ranks + sp, all_ranks, all_ranks + sp + "training.micro_batch=2",
                                         four_ranks + sp, two_ranks + sp + "parallelism.pp=2 parallelism.dp=2",
                                         two_ranks + sp + "parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b",
                                         two_ranks + sp + "parallelism.pp=2 parallelism.dp=2 parallelism.order=[dp,pp,tp,cp,ep]",
                                         two_ranks +
                                             "model.rotary=false model.max_positions=16 model.norm=layer model.gated=false",
                                         two_ranks + sp + "model.tied_embeddings=true parallelism.pp=2 parallelism.dp=2",
                                         two_ranks + sp + "model.mtp_depth=1 parallelism.pp=2"));

INSTANTIATE_TEST_SUITE_P(Zero, SharedKvHeads,
                         testing::Values(two_ranks + "parallelism.dp=2 parallelism.zero=0 training.bucket_MB=0.004",
                                         all_ranks + sp + "parallelism.dp=2 parallelism.zero=1 training.overlap.dp=false",
                                         two_ranks + sp + "parallelism.dp=2 parallelism.zero=2 training.bucket_MB=0.001",
                                         two_ranks + sp + "parallelism.dp=2 parallelism.zero=3",
                                         four_ranks +
                                             "parallelism.dp=2 parallelism.zero=3 parallelism.reshard_after_forward=false",
                                         two_ranks + sp + "parallelism.dp=4 parallelism.zero=3 parallelism.hsdp=2",
                                         two_ranks + "parallelism.dp=4 parallelism.zero=1 training.hierarchical_all_reduce=true",
                                         two_ranks + "parallelism.dp=3 training.global_batch=6 parallelism.zero=2 "
                                                     "cluster.gpus_per_node=4 cluster.nics_per_node=4"));  // padded slices

INSTANTIATE_TEST_SUITE_P(Recompute, SharedKvHeads,
                         testing::Values(two_ranks + sp + "training.recompute=full",
                                         two_ranks + sp + "training.recompute=selective",
                                         all_ranks + "training.recompute=[norm,activation,attention]"));

INSTANTIATE_TEST_SUITE_P(Context, SharedKvHeads,
                         testing::Values(two_ranks + sp + "parallelism.cp=2",
                                         all_ranks + "parallelism.cp=4 parallelism.cp_layout=contiguous",
                                         two_ranks + sp +
                                             "parallelism.cp=2 parallelism.cp_method=all-gather training.recompute=selective",
                                         two_ranks + sp + "parallelism.cp=2 parallelism.dp=2 parallelism.zero=3"));

INSTANTIATE_TEST_SUITE_P(SplitBackward, SharedKvHeads,
                         testing::Values(two_ranks + zb_h1, two_ranks + sp + zb_h1 + "parallelism.dp=2 parallelism.zero=3",
                                         all_ranks + sp + zb_h1 + "training.recompute=selective",
                                         two_ranks + sp + zb_v + "parallelism.dp=2 parallelism.zero=2",
                                         two_ranks + sp + zb_v + "parallelism.cp=2", two_ranks + sp + dualpipe,
                                         all_ranks + dualpipe + "parallelism.dp=2 parallelism.zero=3"));

INSTANTIATE_TEST_SUITE_P(Experts, SharedKvHeads,
                         testing::Values(two_ranks + sp +
                                         "model.moe.experts=4 model.moe.top_k=2 model.moe.ffn=16 parallelism.ep=2 "
                                         "parallelism.etp=2 parallelism.dp=2"));

TEST(SharedKvHeadsFolding, OneClassPerStageAcrossNodesToo) {
  EXPECT_EQ(expect_equal_when_folded(tiny_cluster(words(four_ranks + sp + "parallelism.pp=2 parallelism.dp=2"))), 2U);
  // Two of the four ranks of a tensor-parallel group on each node.
  EXPECT_EQ(expect_equal_when_folded(tiny_cluster(words(two_ranks + "cluster.gpus_per_node=2 cluster.nics_per_node=2"))), 1U);
}

TEST(SharedKvHeadsFolding, ASlowGpuSplitsTheClasses) {
  std::vector<std::string> overrides = words(two_ranks + sp + "parallelism.pp=2 parallelism.dp=2");
  overrides.emplace_back("faults={slow_gpu: {rank: 5, factor: 0.5}}");
  EXPECT_GT(expect_equal_when_folded(tiny_cluster(overrides)), 2U);
}

constexpr Bytes fp32 = 4;
constexpr std::int64_t layers = 4, micro_batches = 8, sequence = 16, hidden = 32, heads = 8, head_dim = 4;

Dag lowered(const std::string& overrides) {
  const Scenario scenario = tiny_cluster(words(overrides));
  return lower(scenario, make_world(scenario, false));
}

TEST(SharedKvHeadsVolumes, ARingPassesOneHeadOn) {
  // The key and the value of one head for every token of the rank: 2 b (s/cp) d numbers per hop; cp - 1 of these hops, as many
  // again backward, and cp of their gradients. So it stays from tp = kv_heads on.
  for (const std::string& mesh : {std::string("model.kv_heads=2 parallelism.tp=2 "), two_ranks, four_ranks}) {
    const Dag dag = lowered(mesh + "parallelism.cp=2");
    const Bytes hop = 2 * sequence / 2 * head_dim * fp32;
    for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) {
      const auto volumes = volumes_of(dag, rank);
      EXPECT_EQ(volumes.at("send cp forward"), (Volume{micro_batches * layers, micro_batches * layers * hop}));
      EXPECT_EQ(volumes.at("send cp backward-input"), (Volume{3 * micro_batches * layers, 3 * micro_batches * layers * hop}));
    }
  }
}

TEST(SharedKvHeadsVolumes, ReplicasSumTheirGradientsOnceAStep) {
  // Of the weights of one key and one value head, 2 d h in each layer; of the rank's slice of them from ZeRO-1 on.
  for (const int zero : {0, 1}) {
    for (const std::string& mesh : {two_ranks, four_ranks, all_ranks}) {
      const Dag dag = lowered(mesh + "parallelism.dp=2 parallelism.zero=" + std::to_string(zero));
      const Bytes owned = layers * 2 * head_dim * hidden * fp32 / (zero == 0 ? 1 : 2);
      for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) {
        EXPECT_EQ(volumes_of(dag, rank).at("all_reduce tp optimizer"), (Volume{1, owned}));
      }
    }
  }
}

TEST(SharedKvHeadsVolumes, ReplicasAreNeighbours) {
  const Dag dag = lowered(two_ranks + "parallelism.dp=2");
  for (const Communicator& communicator : dag.communicators) {
    if (communicator.name != "kv replicas") continue;
    ASSERT_EQ(communicator.members.size(), 2U);
    EXPECT_EQ(communicator.members[0] % 2, 0U);
    EXPECT_EQ(communicator.members[1], communicator.members[0] + 1);
  }
}

TEST(SharedKvHeadsVolumes, TwoProjectionsTakeOneGather) {
  // Per pass as many as with a key-value head for every rank: four layers with two each, and the LM head's.
  for (const std::string& schedule : {std::string(), std::string("training.schedule=zb-h1 ")}) {
    const auto shared = volumes_of(lowered(two_ranks + sp + schedule), 0);
    const auto own = volumes_of(lowered("parallelism.tp=4 " + sp + schedule), 0);
    for (const auto& [what, volume] : own) {
      if (!what.starts_with("all_gather tp") && !what.starts_with("reduce_scatter tp")) continue;
      EXPECT_EQ(shared.at(what), volume) << what;
    }
  }
}

TEST(SharedKvHeadsCosts, ProjectionsAreThoseOfOneHead) {
  // y = x W^T takes 2 s b h numbers of outputs: heads / tp queries, a key and a value.
  for (const std::int64_t tp : {4, 8}) {
    const Dag dag = lowered("model.kv_heads=2 parallelism.tp=" + std::to_string(tp));
    std::vector<Flops> flops(dag.ranks.size(), 0);
    for (TaskId id = 0; id < dag.tasks.size(); ++id) {
      if (dag.name_of_task(id) == "qkv" && dag.tasks[id].phase == Phase::forward)
        flops[dag.tasks[id].rank] += cost_of(dag, id).flops;
    }
    const auto outputs = (heads / tp + 2) * head_dim;
    for (const Flops rank : flops) EXPECT_EQ(rank, static_cast<Flops>(micro_batches * layers * 2 * sequence * hidden * outputs));
  }
}

TEST(SharedKvHeadsCosts, ARankKeepsTheKeyAndTheValueOfOneHead) {
  for (const std::int64_t tp : {2, 4, 8}) {
    const Dag dag = lowered("model.kv_heads=2 parallelism.tp=" + std::to_string(tp));
    for (TaskId id = 0; id < dag.tasks.size(); ++id) {
      if (dag.tasks[id].op != OpKind::attention) continue;
      const std::span<const Operand> operands = dag.operands_of(id);
      EXPECT_EQ(dag.buffers[operands[0].buffer].shape, Shape(sequence, 1, heads / tp, head_dim));
      EXPECT_EQ(dag.buffers[operands[1].buffer].shape, Shape(sequence, 1, 1, head_dim));
      EXPECT_EQ(dag.buffers[operands[2].buffer].shape, Shape(sequence, 1, 1, head_dim));
    }
  }
}

}  // namespace
}  // namespace tandem::studies::shared_kv_heads_test
