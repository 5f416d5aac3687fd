// Multi-head latent attention: the sharded step is the unsharded one, and what it computes is what its formula says.

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "scenarios/lowering/lower.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::mla_test {
namespace {

const std::string latent =
    "model.kv_heads=8 model.mla.q_rank=12 model.mla.kv_rank=16 model.mla.rope_dim=4 model.mla.nope_dim=6 model.mla.v_dim=5 ";

class Mla : public testing::TestWithParam<const char*> {};

TEST_P(Mla, ShardedStepIsTheUnshardedStep) { EXPECT_LT(largest_difference(tiny_model(words(latent + GetParam()))), 1e-5); }

INSTANTIATE_TEST_SUITE_P(
    Meshes, Mla,
    testing::Values("", "parallelism.tp=2", "parallelism.tp=4 parallelism.sp=true", "parallelism.pp=2 parallelism.dp=2",
                    "parallelism.tp=2 parallelism.sp=true parallelism.pp=2 parallelism.dp=2 parallelism.zero=2",
                    "parallelism.tp=2 parallelism.sp=true training.recompute=full",
                    "parallelism.tp=2 parallelism.sp=true training.recompute=selective",
                    "parallelism.tp=2 training.recompute=selective training.micro_batch=2",
                    "parallelism.tp=2 parallelism.sp=true model.mla.q_rank=0", "parallelism.dp=2 model.mla.q_rank=0",
                    "parallelism.cp=2", "parallelism.cp=4 parallelism.cp_method=all-gather",
                    "parallelism.cp=2 parallelism.cp_method=ulysses parallelism.cp_layout=contiguous",
                    "parallelism.cp=2 parallelism.tp=2 parallelism.sp=true training.recompute=selective",
                    "parallelism.dp=2 parallelism.zero=3",
                    "parallelism.tp=2 parallelism.sp=true model.norm=layer model.gated=false"));

TEST(MlaStep, CostsTheFlopsOfItsFormula) {
  const Scenario scenario = tiny_model(words(latent));
  const Dag dag = lower(scenario, make_world(scenario, false));
  Flops flops = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) flops += cost_of(dag, id).flops;
  // Attention's backward takes (3 d + 2 e) / (d + e) times its forward where the formula counts twice, and s (s + 1) / 2 pairs
  // are seen, not s * s / 2; with d 10, e 5, 8 heads, sequence 16.
  const double forward_attention = 8 * 2 * (10 + 5) * 16 * 17 / 2.0 / 16;
  const double correction = forward_attention + 8 * 2 * (3 * 10 + 2 * 5) * 16 * 17 / 2.0 / 16 - 3 * 16 * 8 * (10 + 5);
  const double expected = (dag.info.model_flops_per_token + 4 * correction) * static_cast<double>(dag.info.tokens);
  EXPECT_NEAR(flops, expected, 1e-9 * expected);
}

TEST(MlaStep, RecomputesItsProjectionsUp) {
  Scenario scenario = tiny_model(words(latent + "parallelism.tp=2 parallelism.sp=true"));
  scenario.training.recompute.mla_up = true;
  EXPECT_LT(largest_difference(scenario), 1e-5);
  const Dag dag = lower(scenario, make_world(scenario, false));
  std::map<std::string, int> again;
  for (TaskId id = 0; id < dag.tasks.size(); ++id)
    if (dag.tasks[id].phase == Phase::recompute && dag.tasks[id].op == OpKind::gemm) ++again[std::string(dag.name_of_task(id))];
  // Two ranks, four layers, eight micro-batches.
  EXPECT_EQ(again, (std::map<std::string, int>{{"latent up", 2 * 4 * 8}, {"query up", 2 * 4 * 8}}));
}

TEST(MlaStep, DoesNotKeepANormThatIsRecomputed) {
  for (const std::string mesh : {"", " parallelism.cp=2"}) {
    const Scenario scenario = tiny_model(words(latent + "model.mla.q_rank=0 training.recompute=[norm,mla-up]" + mesh));
    EXPECT_LT(largest_difference(scenario), 1e-5);
    const Dag dag = lower(scenario, make_world(scenario, false));
    std::set<BufferId> normed;
    std::size_t reads = 0;
    for (TaskId id = 0; id < dag.tasks.size(); ++id) {
      for (const Operand& operand : dag.operands_of(id)) {
        const bool forward = dag.tasks[id].phase == Phase::forward;
        if (operand.access() == Access::write && forward && dag.name_of_task(id) == "attention norm")
          normed.insert(operand.buffer);
        if (operand.access() == Access::read && normed.contains(operand.buffer)) {
          ++reads;
          EXPECT_TRUE(forward) << dag.name_of_task(id) << " reads it backward";
        }
      }
    }
    EXPECT_GT(reads, 0U);
  }
}

// DeepSeek-V3 keeps 512 numbers of a token, where 128 heads have a key and a value of 128 each: 2 * 128 * 128 / 512 = 64.
TEST(MlaStep, LatentIsAFractionOfKeysAndValues) {
  const Scenario scenario =
      tiny_cluster({"model={layers: 1, hidden: 7168, heads: 128, kv_heads: 128, ffn: 18432, vocab: 96, mla: {q_rank: 1536, "
                    "kv_rank: 512, rope_dim: 64, "
                    "nope_dim: 128, v_dim: 128}}",
                    "training.global_batch=1"});
  const Dag dag = lower(scenario, make_world(scenario, false));
  std::int64_t latents = 0, values = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const std::int64_t last = dag.buffers[dag.operands_of(id).back().buffer].shape.elements();
    if (dag.name_of_task(id) == "latent norm" && dag.tasks[id].phase == Phase::forward) latents += last;
    if (dag.tasks[id].op == OpKind::mla_keys_values) values += last;
  }
  EXPECT_EQ(latents, 16 * 512);
  EXPECT_EQ(2 * values, 64 * latents);
}

TEST(MlaStep, FoldsLikeAnyOther) {
  EXPECT_EQ(expect_equal_when_folded(
                tiny_cluster(words(latent + "parallelism.tp=4 parallelism.sp=true parallelism.pp=2 parallelism.dp=2"))),
            2U);
}

}  // namespace
}  // namespace tandem::studies::mla_test
