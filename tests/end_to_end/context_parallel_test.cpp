// Context parallelism: the same step as the unsharded one, folded or not, with the volumes and the balance of its closed forms.

#include <gtest/gtest.h>

#include "runtime/ops/attention_mask.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/positions.h"
#include "scenarios/mesh/world.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"
#include "tests/end_to_end/volumes.h"

namespace tandem::studies::context_parallel_test {
namespace {

class ContextParallel : public testing::TestWithParam<const char*> {};

// As in equivalence_test: rounding alone differs.
TEST_P(ContextParallel, ShardedStepIsTheUnshardedStep) { EXPECT_LT(largest_difference(tiny_model(words(GetParam()))), 1e-5); }

INSTANTIATE_TEST_SUITE_P(
    Ring, ContextParallel,
    testing::Values("parallelism.cp=2", "parallelism.cp=4", "parallelism.cp=8",
                    "parallelism.cp=2 parallelism.cp_layout=contiguous", "parallelism.cp=4 parallelism.cp_layout=contiguous",
                    "parallelism.cp=4 training.micro_batch=2", "parallelism.cp=2 parallelism.tp=2 parallelism.sp=true",
                    "parallelism.cp=4 parallelism.tp=2 parallelism.sp=true parallelism.cp_layout=contiguous",
                    "parallelism.cp=2 parallelism.pp=2 parallelism.dp=2",
                    "parallelism.cp=2 parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b",
                    "parallelism.cp=2 parallelism.dp=2 parallelism.zero=0",
                    "parallelism.cp=4 parallelism.dp=2 parallelism.zero=2", "parallelism.cp=2 training.recompute=full",
                    "parallelism.cp=4 training.recompute=selective",
                    "parallelism.cp=2 parallelism.tp=2 parallelism.sp=true parallelism.pp=2 parallelism.dp=2 "
                    "parallelism.order=[cp,pp,tp,dp,ep] training.bucket_MB=0.004",
                    "parallelism.cp=2 model.rotary=false model.max_positions=16 model.norm=layer model.gated=false"));

INSTANTIATE_TEST_SUITE_P(
    AllGather, ContextParallel,
    testing::Values("parallelism.cp_method=all-gather parallelism.cp=2", "parallelism.cp_method=all-gather parallelism.cp=4",
                    "parallelism.cp_method=all-gather parallelism.cp=4 parallelism.cp_layout=contiguous training.micro_batch=2",
                    "parallelism.cp_method=all-gather parallelism.cp=2 parallelism.tp=2 parallelism.sp=true parallelism.pp=2 "
                    "parallelism.dp=2 parallelism.zero=2",
                    "parallelism.cp_method=all-gather parallelism.cp=4 training.recompute=full",
                    "parallelism.cp_method=all-gather parallelism.cp=2 training.recompute=selective"));

INSTANTIATE_TEST_SUITE_P(
    Ulysses, ContextParallel,
    testing::Values("parallelism.cp_method=ulysses parallelism.cp=2", "parallelism.cp_method=ulysses parallelism.cp=4",
                    "parallelism.cp_method=ulysses parallelism.cp=2 training.micro_batch=2 parallelism.tp=2 parallelism.sp=true",
                    "parallelism.cp_method=ulysses parallelism.cp=2 parallelism.tp=2 parallelism.pp=2 parallelism.dp=2 "
                    "parallelism.zero=2",
                    "parallelism.cp_method=ulysses parallelism.cp=2 training.recompute=full",
                    "parallelism.cp_method=ulysses parallelism.cp=4 training.recompute=selective"));

INSTANTIATE_TEST_SUITE_P(
    UlyssesRing, ContextParallel,
    testing::Values("parallelism.cp=4 parallelism.cp_method=ulysses-ring parallelism.cp_ulysses=2",
                    "parallelism.cp=8 parallelism.cp_method=ulysses-ring parallelism.cp_ulysses=4",
                    "parallelism.cp=8 parallelism.cp_method=ulysses-ring parallelism.cp_ulysses=2 "
                    "parallelism.cp_layout=contiguous training.micro_batch=2",
                    "parallelism.cp=4 parallelism.cp_method=ulysses-ring parallelism.cp_ulysses=2 parallelism.tp=2 "
                    "parallelism.sp=true parallelism.dp=2 parallelism.zero=2",
                    "parallelism.cp=4 parallelism.cp_method=ulysses-ring parallelism.cp_ulysses=2 training.recompute=full",
                    "parallelism.cp=4 parallelism.cp_method=ulysses-ring parallelism.cp_ulysses=2 parallelism.pp=2 "
                    "training.recompute=selective model.attention_sinks=true",
                    "parallelism.cp=4 parallelism.cp_method=ulysses-ring parallelism.cp_ulysses=2 model.kv_heads=8 "
                    "model.mla.kv_rank=16 model.mla.rope_dim=4 model.mla.nope_dim=6 model.mla.v_dim=5 "
                    "training.recompute=[mla-up]",
                    "parallelism.cp=4 parallelism.cp_method=ulysses-ring parallelism.cp_ulysses=2 "
                    "model.layer_types=[mamba,full_attention] model.mamba.heads=8 model.mamba.head_dim=64 model.mamba.state=6 "
                    "model.mamba.groups=4 model.mamba.chunk=4",
                    "parallelism.cp=4 parallelism.cp_method=ulysses-ring parallelism.cp_ulysses=2 training.documents.mean=5 "
                    "training.documents.sigma=0.8 training.micro_batch=2"));

std::size_t classes(const std::string& overrides) {
  SCOPED_TRACE(overrides);
  return expect_equal_when_folded(tiny_cluster(words(overrides)));
}

TEST(ContextParallelFolding, BalancedRanksAreOneClassPerStage) {
  EXPECT_EQ(classes("parallelism.cp=4 parallelism.tp=2"), 1U);
  EXPECT_EQ(classes("parallelism.cp=2 parallelism.pp=2 parallelism.dp=2 parallelism.tp=2"), 2U);
  EXPECT_EQ(classes("parallelism.cp=4 parallelism.cp_method=all-gather parallelism.tp=2"), 1U);
  EXPECT_EQ(classes("parallelism.cp=4 parallelism.cp_method=ulysses"), 1U);
  EXPECT_EQ(classes("parallelism.cp=8 parallelism.cp_method=ulysses-ring parallelism.cp_ulysses=4"), 1U);
  EXPECT_EQ(classes("parallelism.cp=8 parallelism.cp_method=ulysses-ring parallelism.cp_ulysses=2 parallelism.pp=2"), 2U);
}

TEST(ContextParallelFolding, ContiguousRunsAreOneClassEach) {
  for (const std::string method : {"ring", "all-gather"}) {
    EXPECT_EQ(classes("parallelism.cp=4 parallelism.cp_layout=contiguous parallelism.tp=2 parallelism.cp_method=" + method), 4U);
    EXPECT_EQ(
        classes("parallelism.cp=2 parallelism.pp=2 parallelism.dp=2 parallelism.cp_layout=contiguous parallelism.cp_method=" +
                method),
        4U);
  }
}

TEST(ContextParallelFolding, ContiguousRunsOfGroupsAreOneClassEach) {
  EXPECT_EQ(classes("parallelism.cp=8 parallelism.cp_method=ulysses-ring parallelism.cp_ulysses=2 "
                    "parallelism.cp_layout=contiguous"),
            4U);
}

TEST(ContextParallelFolding, AcrossNodesInAnyOrderWithASlowGpu) {
  for (const std::string order : {"[tp,cp,ep,dp,pp]", "[dp,cp,tp,pp,ep]", "[pp,dp,cp,tp,ep]", "[cp,tp,pp,dp,ep]"}) {
    for (const std::string method : {"ring", "all-gather", "ulysses", "ulysses-ring parallelism.cp_ulysses=2"}) {
      const std::string mesh =
          "parallelism.cp=4 parallelism.tp=2 parallelism.pp=2 parallelism.dp=2 cluster.gpus_per_node=4 "
          "cluster.nics_per_node=4 model.heads=16 model.head_dim=2 model.kv_heads=8 parallelism.order=" +
          order + " parallelism.cp_method=" + method;
      classes(mesh);
      classes(mesh + " parallelism.cp_layout=contiguous");
      std::vector<std::string> overrides = words(mesh);
      overrides.emplace_back("faults={slow_gpu: {rank: 3, factor: 0.5}}");
      SCOPED_TRACE(mesh + " and a slow GPU");
      expect_equal_when_folded(tiny_cluster(overrides));
      if (HasFailure()) return;
    }
  }
}

constexpr Bytes fp32 = 4;
constexpr std::size_t layers = 4, micro_batches = 8;

Dag lowered(const std::string& overrides) {
  const Scenario scenario = tiny_cluster(words(overrides));
  return lower(scenario, make_world(scenario, false));
}

TEST(ContextParallelVolumes, TheRingPassesAllOtherKeysAndValues) {
  // Per layer and micro-batch: cp - 1 hops of keys and values, 2 b (s/cp) d_kv numbers each, d_kv = 4 heads x 4. Backward the
  // same once more, and cp hops of their gradients.
  for (const std::size_t cp : {2, 4}) {
    const auto hop = static_cast<Bytes>(2 * 16 / cp * 16) * fp32;
    const Dag dag = lowered("parallelism.cp=" + std::to_string(cp));
    for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) {
      const auto volumes = volumes_of(dag, rank);
      const std::size_t forward = micro_batches * layers * (cp - 1), backward = micro_batches * layers * (2 * cp - 1);
      for (const std::string end : {"send", "receive"}) {
        EXPECT_EQ(volumes.at(end + " cp forward"), (Volume{forward, static_cast<Bytes>(forward) * hop}));
        EXPECT_EQ(volumes.at(end + " cp backward-input"), (Volume{backward, static_cast<Bytes>(backward) * hop}));
      }
    }
  }
}

TEST(ContextParallelVolumes, MaskedBlocksAreSentOnAsWell) {
  const Dag zigzag = lowered("parallelism.cp=4");
  const Dag contiguous = lowered("parallelism.cp=4 parallelism.cp_layout=contiguous");
  for (RankIndex rank = 0; rank < 4; ++rank) EXPECT_EQ(volumes_of(zigzag, rank), volumes_of(contiguous, rank));
}

TEST(ContextParallelVolumes, GatheringCollectsAllKeysAndValuesOnce) {
  // All of the sequence's keys and values, 2 b s d_kv: gathered forward, again backward; as many gradients scattered.
  const Dag dag = lowered("parallelism.cp=4 parallelism.cp_method=all-gather");
  const auto volumes = volumes_of(dag, 0);
  const std::size_t passes = micro_batches * layers;
  const Volume all{passes, static_cast<Bytes>(passes) * 2 * 16 * 16 * fp32};
  EXPECT_EQ(volumes.at("all_gather cp forward"), all);
  EXPECT_EQ(volumes.at("all_gather cp backward-input"), all);
  EXPECT_EQ(volumes.at("reduce_scatter cp backward-input"), all);
}

TEST(ContextParallelVolumes, UlyssesExchangesQueriesKeysValuesAndOutputs) {
  // b (s/cp) (d_q + 2 d_kv + d_out) numbers in four exchanges, of which (cp - 1)/cp leave; as much backward.
  const Dag dag = lowered("parallelism.cp=4 parallelism.cp_method=ulysses");
  const auto volumes = volumes_of(dag, 0);
  const std::size_t passes = micro_batches * layers;
  const Volume all{4 * passes, static_cast<Bytes>(passes) * 16 / 4 * (32 + 2 * 16 + 32) * fp32};
  EXPECT_EQ(volumes.at("all_to_all cp forward"), all);
  EXPECT_EQ(volumes.at("all_to_all cp backward-input"), all);
}

TEST(ContextParallelVolumes, UlyssesInGroupsShortensTheRing) {
  // The exchanges of ulysses among 2, and a ring of 4 / 2 groups whose messages are as large as those of 4 ranks: twice as many
  // positions of half as many heads.
  const Dag dag = lowered("parallelism.cp=4 parallelism.cp_method=ulysses-ring parallelism.cp_ulysses=2");
  const std::size_t passes = micro_batches * layers;
  const auto hop = static_cast<Bytes>(2 * 16 / 4 * 16) * fp32;
  const Volume exchanged{4 * passes, static_cast<Bytes>(passes) * 16 / 4 * (32 + 2 * 16 + 32) * fp32};
  for (RankIndex rank = 0; rank < 4; ++rank) {
    const auto volumes = volumes_of(dag, rank);
    EXPECT_EQ(volumes.at("all_to_all cp forward"), exchanged);
    EXPECT_EQ(volumes.at("all_to_all cp backward-input"), exchanged);
    EXPECT_EQ(volumes.at("send cp forward"), (Volume{passes, static_cast<Bytes>(passes) * hop}));
    EXPECT_EQ(volumes.at("send cp backward-input"), (Volume{3 * passes, static_cast<Bytes>(3 * passes) * hop}));
  }
}

/// FLOPs of attention by context-parallel rank.
std::vector<Flops> attention_flops(const std::string& overrides) {
  const Dag dag = lowered(overrides);
  std::vector<Flops> flops(dag.ranks.size(), 0);
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const OpKind op = dag.tasks[id].op;
    if (op == OpKind::attention || op == OpKind::attention_backward) flops[dag.tasks[id].rank] += cost_of(dag, id).flops;
  }
  return flops;
}

TEST(ContextParallelBalance, ZigzagGivesEveryRankTheSameWork) {
  for (const std::string method : {"ring", "all-gather", "ulysses-ring parallelism.cp_ulysses=2"}) {
    const std::vector<Flops> flops = attention_flops("parallelism.cp=4 parallelism.cp_method=" + method);
    for (const Flops rank : flops) EXPECT_EQ(rank, flops.front());
  }
  // By hop as well: the own block shows c(c+1)/2 pairs in each of two chunks of c and c^2 between them; in any other block,
  // either its first chunk is seen by both chunks of queries, or both its chunks by the second: 2 c^2.
  const Scenario scenario = tiny_cluster(words("parallelism.cp=4"));
  constexpr std::int64_t c = 16 / 8;
  for (std::int64_t queries = 0; queries < 4; ++queries)
    for (std::int64_t keys = 0; keys < 4; ++keys)
      EXPECT_EQ(seen_pairs({.queries = positions_of(scenario, queries), .keys = positions_of(scenario, keys)}, 2 * c, 2 * c),
                queries == keys ? c * (c + 1) + c * c : 2 * c * c);
}

TEST(ContextParallelBalance, ContiguousRunsDifferByTwiceTheirNumberLessOne) {
  // With runs of c, rank r sees r whole blocks of c^2 pairs and its own triangle of c(c+1)/2: by half blocks 2 r + 1, so that the
  // last to the first is 2 cp - 1 to 1, but for the diagonal, whose c/2 of c^2/2 pairs vanish as c grows.
  constexpr double c = 4096;
  const auto runs = attention_flops("parallelism.cp=4 parallelism.cp_layout=contiguous training.sequence=16384");
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const double r = static_cast<double>(rank);
    EXPECT_DOUBLE_EQ(runs[rank] / runs[0], (r * c * c + c * (c + 1) / 2) / (c * (c + 1) / 2));
    EXPECT_NEAR(runs[rank] / runs[0], 2 * r + 1, 2 * r / c);
  }
}

TEST(ContextParallelBalance, HiddenBlocksAreNotComputed) {
  const Dag dag = lowered("parallelism.cp=4 parallelism.cp_layout=contiguous");
  std::vector<std::size_t> blocks(4, 0);
  for (const Task& task : dag.tasks) {
    if (task.op == OpKind::attention) ++blocks[task.rank];
  }
  for (std::size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(blocks[rank], micro_batches * layers * (rank + 1));
}

}  // namespace
}  // namespace tandem::studies::context_parallel_test
