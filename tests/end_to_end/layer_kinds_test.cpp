// Layers that differ, and what attention may have beside heads.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "runtime/dag/dag.h"
#include "runtime/host/loss.h"
#include "runtime/host/unsharded.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/reading/load.h"
#include "scenarios/spec/parameter_count.h"
#include "studies/step/executed_step.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::layer_kinds_test {
namespace {

const std::string sliding = "model.layer_types=[sliding_attention,sliding_attention,full_attention] model.window=5 ";
const std::string chunked =
    "model.layer_types=[chunked_attention,full_attention] model.attention_chunk=6 model.rotary_full_attention=false ";
const std::string halves = "model.layer_types=[attention,mlp] ";
const std::string gemma =
    sliding + "model.qk_norm=head model.norm_placement=both model.activation=gelu model.sliding_rotary_base=100 ";
const std::string gpt_oss = sliding + "model.attention_sinks=true ";
const std::string qwen2 = "model.attention_bias=qkv ";
const std::string gemma2 = sliding + "model.attention_softcap=0.5 model.logit_softcap=0.75 model.attention_bias=all ";
const std::string capped = "model.attention_softcap=0.5 model.rotary_share=0.5 ";
const std::string olmo = "model.norm_placement=post ";
const std::string qwen3_next = "model.attention_gate=true model.qk_norm=head ";
const std::string olmo2 = "model.qk_norm=all model.norm_placement=post ";
const std::string clamped = "model.activation=quick-gelu model.activation_limit=0.5 model.activation_offset=1 ";
const std::string granite =
    "model.embedding_factor=3 model.logit_factor=0.25 model.attention_scale=0.4 "
    "model.residual.full_attention_beta=0.5 model.residual.mlp_beta=0.5 ";
const std::string llama4 = chunked + "model.qk_norm=unit ";
const std::string relu = "model.gated=false model.activation=squared-relu model.qk_norm=head model.norm=layer ";

class LayerKinds : public testing::TestWithParam<const char*> {};

// fp32 sums in another order: see equivalence_test.cpp.
TEST_P(LayerKinds, AreTheUnshardedStep) {
  for (const std::string& model :
       {sliding, chunked, halves, gemma, gpt_oss, capped, olmo, relu, qwen2, gemma2, qwen3_next, olmo2, clamped, granite, llama4})
    EXPECT_LT(largest_difference(tiny_model(words(model + GetParam()))), 3e-5) << model;
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, LayerKinds,
    testing::Values("parallelism.tp=4 parallelism.sp=true", "parallelism.tp=2 parallelism.dp=2",
                    "parallelism.tp=8 model.kv_heads=2 parallelism.sp=true training.overlap.tp=true",
                    "parallelism.cp=4 parallelism.cp_method=ring", "parallelism.cp=2 parallelism.cp_layout=contiguous",
                    "parallelism.cp=2 parallelism.cp_method=all-gather parallelism.tp=2",
                    "parallelism.cp=2 parallelism.cp_method=ulysses training.recompute=selective parallelism.tp=2",
                    "parallelism.pp=2 training.schedule=zb-h1 parallelism.dp=2 parallelism.zero=2",
                    "parallelism.dp=4 parallelism.zero=3 training.recompute=[norm,activation]",
                    "parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b training.recompute=full"));

// Queries that see one key alone have no gradient, nor has what all keys have in common: only rounding is compared.
TEST(LayerKindsWithoutGradient, AreTheUnshardedStep) {
  for (const char* model : {"model.layer_types=[sliding_attention,full_attention] model.window=1",
                            "model.qk_norm=head model.norm=layer model.rotary=false model.max_positions=16"})
    EXPECT_LT(largest_difference(tiny_model(words(std::string(model) + " parallelism.tp=2 parallelism.cp=2"))), 1e-4) << model;
}

TEST(LayerKindsWithExperts, AreTheUnshardedStep) {
  const std::string experts = "model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 parallelism.ep=2 parallelism.dp=2 ";
  for (const std::string& model : {sliding, gemma, gpt_oss, clamped, std::string("model.layer_types=[attention,moe,mlp,moe] ")})
    EXPECT_LT(largest_difference(tiny_model(words(experts + model))), 1e-5) << model;
}

// Experts' biases, also where experts have places that no token took, or tokens that found none.
TEST(LayerKindsWithBiasedExperts, AreTheUnshardedStep) {
  const std::string experts =
      "model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 model.moe.linear_bias=true model.attention_bias=all ";
  for (const std::string mesh :
       {"parallelism.ep=2 parallelism.dp=2", "parallelism.ep=4 parallelism.dp=4 model.moe.capacity_factor=0.5",
        "parallelism.ep=2 parallelism.dp=2 model.moe.capacity_factor=2 model.moe.shared_experts=1",
        "parallelism.tp=2 parallelism.sp=true parallelism.ep=2 parallelism.dp=2 parallelism.zero=3 model.gated=false",
        "parallelism.ep=2 parallelism.dp=2 parallelism.pp=2 training.schedule=zb-h1 training.recompute=[mlp]",
        "parallelism.dp=2 model.moe.load=[4,1,1,3,1,2,0,1]"})
    EXPECT_LT(largest_difference(tiny_model(words(experts + mesh))), 3e-5) << mesh;
}

// Biases of routers, gates of shared experts, and groups that are chosen by their best expert.
TEST(LayerKindsWithGatedExperts, AreTheUnshardedStep) {
  const std::string experts =
      "model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 model.moe.router_bias=true model.moe.shared_experts=1 "
      "model.moe.shared_gate=true model.moe.capacity_factor=2 model.moe.groups=4 model.moe.node_limit=2 "
      "model.moe.best_of_group=1 ";
  for (const std::string mesh :
       {"parallelism.ep=2 parallelism.dp=2", "parallelism.tp=2 parallelism.sp=true parallelism.ep=2 parallelism.dp=2",
        "parallelism.tp=2 parallelism.sp=true parallelism.ep=2 parallelism.dp=2 training.overlap.ep=true training.schedule=1f1b",
        "parallelism.ep=2 parallelism.dp=2 parallelism.zero=3 training.recompute=[norm,mlp]",
        "parallelism.ep=2 parallelism.dp=2 parallelism.pp=2 training.schedule=zb-h1 training.recompute=full"})
    EXPECT_LT(largest_difference(tiny_model(words(experts + mesh))), 3e-5) << mesh;
}

TEST(LayerKindsWithLatents, Slide) {
  EXPECT_LT(
      largest_difference(tiny_model(words(sliding + "model.kv_heads=8 model.mla.kv_rank=16 model.mla.rope_dim=4 "
                                                    "model.mla.nope_dim=6 model.mla.v_dim=5 parallelism.cp=2 parallelism.tp=2"))),
      1e-5);
}

Dag lowered(const std::string& overrides) {
  const Scenario scenario = tiny_cluster(words(overrides));
  return lower(scenario, make_world(scenario, false));
}

/// Whether both have the same kernels on the same operands, in the same order.
void expect_same_kernels(const Dag& a, const Dag& b) {
  ASSERT_EQ(a.tasks.size(), b.tasks.size());
  for (TaskId id = 0; id < a.tasks.size(); ++id) {
    const TimedKernel x = kernel_of(a, id), y = kernel_of(b, id);
    ASSERT_EQ(x.op, y.op);
    ASSERT_EQ(x.attributes, y.attributes) << a.name_of_task(id);
  }
}

TEST(LayerTypes, OfOneKindAreTodaysModel) {
  for (const std::string mesh :
       {"parallelism.tp=2 parallelism.sp=true", "parallelism.cp=2", "model.moe.experts=4 model.moe.top_k=2 parallelism.dp=2"})
    expect_same_kernels(lowered(mesh), lowered(mesh + " model.layer_types=[full_attention]"));
}

TEST(LayerTypes, WindowsOfTheSequenceAreFullAttention) {
  const std::string mesh = " parallelism.cp=2 parallelism.tp=2";
  const Dag full = lowered(mesh);
  expect_same_kernels(full, lowered("model.layer_types=[sliding_attention] model.window=16" + mesh));
  expect_same_kernels(full, lowered("model.layer_types=[chunked_attention] model.attention_chunk=16" + mesh));
}

/// Loss, gradients and updated weights of an executed step.
struct Numbers {
  double loss = 0;
  std::map<std::string, std::vector<float>> gradients = {}, weights = {};
  bool operator==(const Numbers&) const = default;
};
Numbers numbers_of(const std::string& overrides) {
  ExecutedStep step(tiny_model(words(overrides)), "test", {.rounds = false});
  step.execute();
  Numbers numbers{.loss = mean_loss(step.memory())};
  const UnshardedState state = gather_unsharded(step.memory());
  for (const auto& [name, tensor] : state.gradients) numbers.gradients[name] = tensor.values;
  for (const auto& [name, tensor] : state.weights) numbers.weights[name] = tensor.values;
  return numbers;
}

// A window as long as the sequence, and longer, hides nothing: the same numbers come out, to the last bit.
TEST(LayerTypes, WindowsOfTheSequenceAreFullAttentionBitForBit) {
  for (const std::string mesh :
       {"", " parallelism.tp=2 parallelism.sp=true", " parallelism.cp=2 parallelism.tp=2", " parallelism.cp=4 parallelism.dp=2",
        " parallelism.cp=2 parallelism.cp_method=all-gather", " model.attention_sinks=true parallelism.pp=2"}) {
    const Numbers full = numbers_of("training.sequence=16" + mesh);
    EXPECT_FALSE(full.gradients.empty());
    for (const std::string layers : {"model.layer_types=[sliding_attention] model.window=16",
                                     "model.layer_types=[sliding_attention,full_attention] model.window=1000",
                                     "model.layer_types=[chunked_attention] model.attention_chunk=16"})
      EXPECT_EQ(full, numbers_of("training.sequence=16 " + layers + mesh)) << layers << mesh;
    EXPECT_NE(full, numbers_of("training.sequence=16 model.layer_types=[sliding_attention] model.window=15" + mesh)) << mesh;
  }
}

// Norms without weights have none, and are in layers that rotate alone.
TEST(LayerTypes, UnitNormsAddNoParameters) {
  const Scenario without = tiny_model(words(chunked)), with = tiny_model(words(llama4));
  EXPECT_EQ(parameter_count(with.model), parameter_count(without.model));
  const Dag dag = lower(with, make_world(with, false));
  for (const Task& task : dag.tasks) {
    if (task.op != OpKind::unit_norm) continue;
    EXPECT_EQ(task.layer % 2, 0) << "full attention is not rotated";
  }
}

Flops flops_of_attention(const Dag& dag) {
  Flops flops = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id)
    if (dag.tasks[id].op == OpKind::attention || dag.tasks[id].op == OpKind::attention_backward) flops += cost_of(dag, id).flops;
  return flops;
}

// Of 16 positions with a window of w: w (w + 1) / 2 + (16 - w) w pairs, whatever ranks they lie on.
TEST(LayerTypes, SeeTheirWindowAlone) {
  const Flops full = flops_of_attention(lowered("model.layer_types=[full_attention]"));
  for (const int w : {1, 3, 8, 15}) {
    const double share = (w * (w + 1) / 2.0 + (16 - w) * w) / (16 * 17 / 2.0);
    for (const std::string mesh : {"", " parallelism.cp=4", " parallelism.cp=2 parallelism.cp_method=all-gather"}) {
      const Dag dag = lowered("model.layer_types=[sliding_attention] model.window=" + std::to_string(w) + mesh);
      EXPECT_NEAR(flops_of_attention(dag) / full, share, 1e-12) << w << mesh;
    }
  }
}

// A ring rank need not attend to blocks that no query of its sees; they pass through all the same.
TEST(LayerTypes, SkipBlocksBeyondTheWindow) {
  const auto kernels = [](const std::string& overrides) {
    const Dag dag = lowered(overrides + " parallelism.cp=4 parallelism.cp_layout=contiguous");
    return std::ranges::count(dag.tasks, OpKind::attention, &Task::op);
  };
  constexpr int passes = 4 * 8;  // layers, times micro-batches
  EXPECT_EQ(kernels("model.layer_types=[full_attention]"), passes * (1 + 2 + 3 + 4));
  EXPECT_EQ(kernels("model.layer_types=[sliding_attention] model.window=2"), passes * (1 + 2 + 2 + 2));
  EXPECT_EQ(kernels("model.layer_types=[chunked_attention] model.attention_chunk=4"), passes * 4);
}

// Of every option: what the step has is what the formula counts, on any mesh.
TEST(LayerKindsParameters, AreThoseOfTheFormula) {
  for (const std::string& model :
       {sliding, chunked, halves, gemma, gpt_oss, capped, olmo, std::string("model.qk_norm=all "), qwen3_next, relu, qwen2,
        gemma2, std::string("model.linear_bias=true "), std::string("model.linear_bias=true model.gated=false "),
        std::string(
            "model.moe.experts=4 model.moe.top_k=2 model.moe.ffn=24 model.moe.linear_bias=true model.moe.router_bias=true "),
        std::string("model.moe.experts=4 model.moe.top_k=2 model.moe.shared_experts=1 model.moe.shared_gate=true ")})
    for (const std::string mesh : {"", "parallelism.dp=2"}) {
      const Scenario scenario = tiny_model(words(model + mesh));
      const Dag dag = lower(scenario, make_world(scenario, true));
      std::int64_t count = 0;
      for (const ParameterShard& shard : dag.shards)
        if (dag.buffers[shard.buffer].rank == 0) count += shard.rows * shard.columns;
      EXPECT_EQ(count, parameter_count(scenario.model)) << model << mesh;
    }
}

TEST(LayerKindsFolded, AreTheUnfoldedOnes) {
  for (const std::string& model : {gemma, gpt_oss, chunked, halves})
    for (const std::string mesh :
         {"parallelism.tp=2 parallelism.dp=4 parallelism.sp=true", "parallelism.pp=2 parallelism.cp=2 parallelism.dp=2"})
      expect_equal_when_folded(tiny_cluster(words(model + mesh)));
}

}  // namespace
}  // namespace tandem::studies::layer_kinds_test
