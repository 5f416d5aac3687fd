// Latent attention to keys that an indexer chooses: the sharded step is the unsharded one, with all keys chosen it is latent
// attention, and what it computes is what its formula says.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "runtime/host/loss.h"
#include "runtime/host/unsharded.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/spec/parameter_count.h"
#include "sim/simulate.h"
#include "studies/step/executed_step.h"
#include "studies/step/simulated_step.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::sparse_attention_test {
namespace {

const std::string latent =
    "model.kv_heads=8 model.mla.q_rank=12 model.mla.kv_rank=16 model.mla.rope_dim=4 model.mla.nope_dim=6 model.mla.v_dim=5 ";
const std::string sparse = latent + "model.indexer.heads=4 model.indexer.head_dim=8 model.indexer.loss_coefficient=0.5 ";

class SparseSteps : public testing::TestWithParam<const char*> {};

// fp32 sums in another order: see equivalence_test.cpp.
TEST_P(SparseSteps, AreTheUnshardedStep) {
  for (const std::string loss : {"", "model.indexer.sparse_loss=false "})
    EXPECT_LT(largest_difference(tiny_model(words(sparse + "model.indexer.top_k=5 " + loss + GetParam()))), 3e-5) << loss;
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, SparseSteps,
    testing::Values("", "parallelism.tp=2", "parallelism.tp=4 parallelism.sp=true", "parallelism.pp=2 parallelism.dp=2",
                    "parallelism.tp=2 parallelism.sp=true parallelism.pp=2 parallelism.dp=2 parallelism.zero=2",
                    "parallelism.tp=2 parallelism.sp=true training.recompute=full",
                    "parallelism.tp=2 parallelism.sp=true training.recompute=selective",
                    "parallelism.tp=2 parallelism.sp=true training.recompute=[norm,mla-up,activation]",
                    "training.recompute=[norm,attention] training.micro_batch=2 model.mla.q_rank=0",
                    "parallelism.tp=2 parallelism.sp=true model.mla.q_rank=0 training.overlap.tp=true",
                    "parallelism.cp=2 parallelism.cp_method=all-gather",
                    "parallelism.cp=4 parallelism.cp_method=all-gather parallelism.cp_layout=contiguous",
                    "parallelism.cp=2 parallelism.cp_method=all-gather parallelism.tp=2 parallelism.sp=true "
                    "training.recompute=selective",
                    "parallelism.pp=2 training.schedule=zb-h1 parallelism.dp=2 parallelism.zero=1",
                    "parallelism.dp=2 parallelism.zero=3", "parallelism.dp=4 parallelism.zero=0 training.micro_batch=2",
                    "parallelism.dp=4 parallelism.zero=0 training.sync_every=2 parallelism.tp=2",
                    "parallelism.tp=2 training.optimizer=muon", "model.mtp_depth=1 parallelism.pp=2",
                    "model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 parallelism.ep=2 parallelism.dp=2"));

/// Its loss and gradients.
struct Outcome {
  double loss = 0;
  UnshardedTensors gradients;
};
Outcome outcome_of(const std::string& overrides) {
  ExecutedStep step(tiny_model(words(overrides)), "test", {.rounds = false});
  step.execute();
  return {mean_loss(step.memory()), gather_unsharded(step.memory()).gradients};
}

// The products of the projections up come in another order: absorbed, or not.
TEST(SparseStep, OfAllKeysIsLatentAttention) {
  const Outcome dense = outcome_of(latent);
  for (const char* top_k : {"16", "4096"}) {
    const Outcome all = outcome_of(sparse + "model.indexer.top_k=" + top_k);
    EXPECT_NEAR(all.loss, dense.loss, 1e-6 * dense.loss);
    for (const auto& [name, tensor] : dense.gradients) {
      const UnshardedTensor& other = all.gradients.at(name);
      double largest = 0, off = 0;
      for (std::size_t i = 0; i < tensor.values.size(); ++i) {
        largest = std::max(largest, std::abs(double{tensor.values[i]}));
        off = std::max(off, std::abs(double{tensor.values[i]} - other.values[i]));
      }
      EXPECT_LT(off, 2e-5 * largest) << name;
    }
  }
}

// What an indexer learns by goes through its own parameters alone: a larger loss makes their gradients larger, and no others.
TEST(SparseStep, TrainsItsIndexerApart) {
  const Outcome small = outcome_of(sparse + "model.indexer.top_k=5"),
                large = outcome_of(sparse + "model.indexer.top_k=5 model.indexer.loss_coefficient=2");
  EXPECT_EQ(small.loss, large.loss);
  int of_indexers = 0;
  for (const auto& [name, tensor] : small.gradients) {
    const UnshardedTensor& other = large.gradients.at(name);
    if (name.find(".index_") == std::string::npos) {
      EXPECT_EQ(tensor.values, other.values) << name;
      continue;
    }
    ++of_indexers;
    double largest = 0;
    for (std::size_t i = 0; i < tensor.values.size(); ++i) {
      largest = std::max(largest, std::abs(double{tensor.values[i]}));
      EXPECT_NEAR(other.values[i], 4 * tensor.values[i], 1e-5 * std::abs(other.values[i]) + 1e-12) << name;
    }
    EXPECT_GT(largest, 0) << name;
  }
  EXPECT_EQ(of_indexers, 4 * 5);  // queries, keys, two of the norm, weights
}

TEST(SparseStep, HasTheParametersOfTheFormula) {
  for (const std::string model : {"", "model.mla.q_rank=0 ", "model.mtp_depth=1 "}) {
    const Scenario scenario = tiny_model(words(sparse + model));
    const Dag dag = lower(scenario, make_world(scenario, true));
    std::int64_t count = 0;
    for (const ParameterShard& shard : dag.shards) count += shard.rows * shard.columns;
    EXPECT_EQ(count, parameter_count(scenario.model)) << model;
  }
}

// Of 16 positions with 5 keys at most: 5 * 6 / 2 + 11 * 5 pairs are attended to, 16 * 17 / 2 are scored, where the formula of the
// step counts 5 - 25 / 32 and 8 for a token. Attention's backward takes (3 d + 2 e) / (d + e) times its forward where the formula
// counts twice.
TEST(SparseStep, CostsTheFlopsOfItsFormula) {
  for (const bool sparse_loss : {true, false}) {
    const Scenario scenario =
        tiny_model(words(sparse + "model.indexer.top_k=5 model.indexer.sparse_loss=" + (sparse_loss ? "true" : "false")));
    const Dag dag = lower(scenario, make_world(scenario, false));
    Flops flops = 0;
    for (TaskId id = 0; id < dag.tasks.size(); ++id) flops += cost_of(dag, id).flops;
    constexpr double chosen = (5 * 6 / 2.0 + 11 * 5) / 16, seen = 17 / 2.0, heads = 8, d = 20, e = 16, of_indexer = 4 * 8;
    constexpr double chosen_by_formula = 5 - 25 / 32.0, seen_by_formula = 8;
    const double learnt = sparse_loss ? chosen : seen, learnt_by_formula = sparse_loss ? chosen_by_formula : seen_by_formula;
    const double attention = 2 * heads * (chosen * (d + e + 3 * d + 2 * e) - 3 * chosen_by_formula * (d + e));
    const double indexer =
        2 * (of_indexer * (seen - seen_by_formula) + (heads * d + 3 * of_indexer) * (learnt - learnt_by_formula));
    const double expected = (dag.info.model_flops_per_token + 4 * (attention + indexer)) * static_cast<double>(dag.info.tokens);
    EXPECT_NEAR(flops, expected, 1e-9 * expected);
  }
}

// Ranks add up what their heads attend to, for each chosen key in fp32, once for each layer and micro-batch.
TEST(SparseStep, AddsUpTheTargetOverTheHeads) {
  const Scenario scenario = tiny_model(words(sparse + "model.indexer.top_k=5 parallelism.tp=2 parallelism.sp=true"));
  const Dag dag = lower(scenario, make_world(scenario, false));
  int sums = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.name_of_task(id) != "index target" || dag.tasks[id].op != OpKind::all_reduce) continue;
    ++sums;
    EXPECT_EQ(dag.buffers[dag.operands_of(id).front().buffer].shape.elements(), 16 * 5);
  }
  EXPECT_EQ(sums, 2 * 4 * 8);
}

// With an indexer's cost growing with the square of the sequence, and that of attention not, it pays where sequences are long.
TEST(SparseStep, PaysWhereSequencesAreLong) {
  const auto time_of = [](const std::string& indexer, int sequence) {
    return simulate_step(tiny_cluster({"model={layers: 2, hidden: 7168, heads: 128, kv_heads: 128, ffn: 2048, vocab: 1024, mla: "
                                       "{q_rank: 1536, kv_rank: 512, "
                                       "rope_dim: 64, nope_dim: 128, v_dim: 128}" +
                                           indexer + "}",
                                       "training.precision=bf16", "training.global_batch=1",
                                       "training.sequence=" + std::to_string(sequence)}),
                         true)
        .result.step_time;
  };
  const std::string indexer = ", indexer: {heads: 64, head_dim: 128, top_k: 2048}";
  EXPECT_GT(time_of(indexer, 2048), time_of("", 2048));
  EXPECT_LT(time_of(indexer, 131'072), 0.5 * time_of("", 131'072));
}

TEST(SparseStep, FoldsLikeAnyOther) {
  EXPECT_EQ(expect_equal_when_folded(tiny_cluster(
                words(sparse + "model.indexer.top_k=5 parallelism.tp=4 parallelism.sp=true parallelism.pp=2 parallelism.dp=2"))),
            2U);
}

}  // namespace
}  // namespace tandem::studies::sparse_attention_test
