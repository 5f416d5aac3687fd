// Training in fp8: the layers' linear GEMMs take fp8 operands, everything else stays as it is in bf16.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "runtime/analysis/memory.h"
#include "scenarios/lowering/lower.h"
#include "sim/kernel_times.h"
#include "sim/simulate.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"
#include "tests/end_to_end/volumes.h"

namespace tandem::studies::fp8_test {
namespace {

Scenario tiny_fp8(const std::string& overrides) { return tiny_cluster(words("training.precision=fp8 " + overrides)); }

Dag lowered(const Scenario& scenario) { return lower(scenario, make_world(scenario, false)); }

class Fp8 : public testing::TestWithParam<const char*> {};

// The host computes in fp32 whatever the type: what is compared is the flow of data through the casts.
TEST_P(Fp8, ShardedStepIsTheUnshardedStep) { EXPECT_LT(largest_difference(tiny_fp8(GetParam())), 1e-5); }

INSTANTIATE_TEST_SUITE_P(Meshes, Fp8,
                         testing::Values("parallelism.tp=2",
                                         "parallelism.tp=2 parallelism.sp=true parallelism.pp=2 parallelism.dp=2",
                                         "parallelism.tp=2 parallelism.sp=true training.recompute=full",
                                         "model.tied_embeddings=true parallelism.pp=2 parallelism.dp=2 parallelism.zero=2",
                                         "parallelism.dp=2 parallelism.zero=3", "parallelism.pp=2 training.schedule=zb-h1"));

Scenario fp8_experts(const std::string& overrides) {
  return tiny_fp8("model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 " + overrides);
}

class Fp8Mixture : public testing::TestWithParam<const char*> {};

TEST_P(Fp8Mixture, ShardedStepIsTheUnshardedStep) { EXPECT_LT(largest_difference(fp8_experts(GetParam())), 1e-5); }

INSTANTIATE_TEST_SUITE_P(Meshes, Fp8Mixture,
                         testing::Values("parallelism.dp=2 parallelism.ep=2",
                                         "parallelism.tp=2 parallelism.sp=true parallelism.dp=2 parallelism.ep=2 "
                                         "parallelism.etp=2 model.moe.capacity_factor=1 model.moe.shared_experts=1",
                                         "parallelism.dp=2 parallelism.ep=2 parallelism.pp=2 training.schedule=zb-h1",
                                         "parallelism.dp=4 parallelism.ep=2 parallelism.zero=3 training.recompute=full",
                                         "parallelism.ep=2 parallelism.expert_axis=own training.recompute=[activation]",
                                         "parallelism.dp=2 parallelism.ep=2 model.moe.load=[1,1,2,1,0,0,0,0] "
                                         "parallelism.zero=2"));

TEST(Fp8Step, MultipliesInFp8InTheLayersAlone) {
  const Dag dag = lowered(tiny_fp8(""));
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.tasks[id].op == OpKind::gemm) {
      EXPECT_EQ(cost_of(dag, id).math, dag.tasks[id].layer >= 0 ? DType::f8 : DType::bf16) << dag.name_of_task(id);
    } else if (dag.tasks[id].op == OpKind::attention) {
      EXPECT_EQ(cost_of(dag, id).math, DType::bf16);
    }
  }
}

TEST(Fp8Step, KeepsTheWorkOfBf16) {
  const auto flops = [](const Dag& dag) {
    Flops sum = 0;
    for (TaskId id = 0; id < dag.tasks.size(); ++id) sum += cost_of(dag, id).flops;
    return sum;
  };
  EXPECT_EQ(flops(lowered(tiny_fp8(""))), flops(lowered(tiny_cluster({"training.precision=bf16"}))));
}

// Per layer and micro-batch: four inputs (of qkv, output, up, down) and four output gradients; and four weights once per step.
TEST(Fp8Step, CastsEachOperandOnce) {
  const Dag dag = lowered(tiny_fp8(""));
  std::size_t casts = 0;
  for (const Task& task : dag.tasks) casts += task.op == OpKind::cast ? 1 : 0;
  const std::size_t layers = 4, micro_batches = 8;
  EXPECT_EQ(casts, layers * (8 * micro_batches + 4));
}

/// On two ranks, four layers of four experts each: 16 tokens of width 32 with two choices, of which each rank gets one half, but
/// from both ranks: 32 rows. Up: [2 x 24, 32] per expert, down [32, 24].
const std::string two_ranks = "parallelism.dp=2 parallelism.ep=2";
constexpr std::int64_t rows = 32, hidden = 32, inner = 24, local_experts = 4, layers = 4;

TEST(Fp8Experts, MultiplyInFp8WhileTheRouterDoesNot) {
  const Dag dag = lowered(fp8_experts(two_ranks));
  std::map<DType, std::size_t> grouped;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.tasks[id].op == OpKind::grouped_gemm) ++grouped[cost_of(dag, id).math];
    if (dag.name_of_task(id) == "router" && dag.tasks[id].op == OpKind::gemm) {
      EXPECT_NE(cost_of(dag, id).math, DType::f8);
    }
    if (dag.tasks[id].op == OpKind::permute || dag.tasks[id].op == OpKind::all_to_all) {
      for (const Operand& operand : dag.operands_of(id)) EXPECT_NE(dag.buffers[operand.buffer].dtype, DType::f8);
    }
  }
  EXPECT_EQ(grouped, (std::map<DType, std::size_t>{{DType::f8, 2 * layers * 4 * 6}}));  // ranks, micro-batches, products
}

/// Of a tensor's scale.
constexpr Bytes scale = 4;

// 2 R n k FLOPs. Forward: fp8 rows and weights in, bf16 rows out; backward: two products, of which that of the weights reads and
// writes fp32 gradients.
TEST(Fp8Experts, ReadOneBytePerNumber) {
  const Dag dag = lowered(fp8_experts(two_ranks));
  const Bytes up = local_experts * 2 * inner * hidden, x = rows * hidden, y = rows * 2 * inner;
  std::map<Phase, Bytes> bytes;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (task.rank != 0 || task.layer != 0 || task.micro_batch != 0 || dag.name_of_task(id) != "experts up") continue;
    const OpCost cost = cost_of(dag, id);
    EXPECT_EQ(cost.flops, 2 * rows * 2 * inner * hidden);
    bytes[task.phase] = cost.bytes;
  }
  EXPECT_EQ(bytes, (std::map<Phase, Bytes>{{Phase::forward, x + up + 2 * scale + 2 * y},
                                           {Phase::backward_input, y + up + 2 * scale + 2 * x},
                                           {Phase::backward_weight, y + x + 2 * scale + 2 * 4 * up}}));
}

/// Widths that fill the tiles of Transformer Engine's fused grouped MLP.
const std::string fused_experts =
    "model.hidden=256 model.moe.ffn=256 training.recipe=mxfp8 training.cuda_graph=full training.framework.captured=[norm] "
    "training.framework.fuses_experts=[hopper] ";

TEST(Fp8Experts, ActivateAndCastWithinTheirProducts) {
  const auto fused = [](const std::string& more) {
    const Dag dag = lowered(fp8_experts(two_ranks + " " + fused_experts + more));
    std::map<OpKind, std::size_t> count;
    for (const Task& task : dag.tasks)
      if (is_fused(dag.attributes[task.attributes])) ++count[task.op];
    return count;
  };
  // Forward one activation and the casts of its output, backward the same of its gradient; ranks, layers, micro-batches.
  const std::size_t passes = 2 * layers * 4;
  EXPECT_EQ(fused(""), (std::map<OpKind, std::size_t>{
                           {OpKind::activation, passes}, {OpKind::activation_backward, passes}, {OpKind::cast, 2 * passes}}));
  EXPECT_TRUE(fused("model.moe.ffn=128").empty());
  EXPECT_TRUE(fused("training.framework.fuses_experts=[blackwell]").empty());
  EXPECT_TRUE(fused("training.recompute=[activation]").empty());
  EXPECT_TRUE(fused("training.cuda_graph=attention").empty());
  const std::size_t outer = passes / layers * 2;  // of two layers of four
  EXPECT_EQ(fused("training.first_last_layers_bf16=true").at(OpKind::activation), passes - outer);
}

/// Busy time of rank 0.
TEST(Fp8Experts, AreFasterByWhatTheyFuse) {
  const auto busy = [](const std::string& more) {
    const Dag dag = lowered(fp8_experts(two_ranks + " " + fused_experts + more));
    const sim::KernelTimes times(dag);
    std::map<OpKind, Seconds> sum;
    for (TaskId id = 0; id < dag.tasks.size(); ++id)
      if (!is_communication(dag.tasks[id].op) && dag.tasks[id].rank == 0) sum[dag.tasks[id].op] += times.of(id);
    return sum;
  };
  auto fused = busy(""), apart = busy("training.framework.fuses_experts=[]");
  EXPECT_EQ(fused[OpKind::activation], 0);
  EXPECT_EQ(fused[OpKind::activation_backward], 0);
  EXPECT_GT(apart[OpKind::activation], 0);
  EXPECT_LT(fused[OpKind::cast], apart[OpKind::cast]);
  for (const OpKind same : {OpKind::activation, OpKind::activation_backward, OpKind::cast}) fused[same] = apart[same] = 0;
  EXPECT_EQ(fused, apart);
}

TEST(Fp8Experts, FusedGiveTheUnshardedStep) {
  for (const char* mesh : {"parallelism.dp=2 parallelism.ep=2", "parallelism.dp=2 parallelism.ep=2 parallelism.pp=2"})
    EXPECT_LT(largest_difference(fp8_experts(fused_experts + mesh)), 1e-5) << mesh;
}

TEST(Fp8Experts, KeepTheWorkOfBf16) {
  const auto flops = [](const Dag& dag) {
    std::map<OpKind, Flops> sum;
    for (TaskId id = 0; id < dag.tasks.size(); ++id) sum[dag.tasks[id].op] += cost_of(dag, id).flops;
    return sum;
  };
  Scenario bf16 = fp8_experts(two_ranks);
  bf16.training.precision = DType::bf16;
  EXPECT_EQ(flops(lowered(fp8_experts(two_ranks))), [&] {
    auto sum = flops(lowered(bf16));
    sum[OpKind::cast] = 0;
    return sum;
  }());
}

/// Activations of rank 0 in fp8, in bytes: what casts wrote.
Bytes cast_bytes(const Dag& dag) {
  Bytes sum = 0;
  for (const Buffer& buffer : dag.buffers) sum += buffer.rank == 0 && buffer.dtype == DType::f8 ? buffer.bytes() : 0;
  return sum;
}

// By rows and by columns: per layer the weights once, and per micro-batch the inputs and output gradients of qkv (32 -> 64),
// output (32 -> 32), up (32 -> 48) and down (24 -> 32).
TEST(Fp8Experts, AreCastOncePerLayout) {
  const Bytes attention = 64 * 32 + 32 * 32, experts = local_experts * (2 * inner * hidden + inner * hidden);
  const Bytes dense_rows = 16 * (32 + 64 + 32 + 32), expert_rows = rows * (hidden + 2 * inner + inner + hidden);
  const Bytes scales = scale * (4 + 4 * (4 + 4));  // of four weights, and of four micro-batches' inputs and output gradients
  EXPECT_EQ(cast_bytes(lowered(fp8_experts(two_ranks))),
            2 * layers * (attention + experts + 4 * (dense_rows + expert_rows) + scales));
}

// Both are fullest after a forward pass. There fp8 holds two casts of every weight besides, for the micro-batches to come, and
// casts by columns of the inputs, for the weights' gradients. Inputs that nothing else reads are gone in bf16's two bytes: qkv's
// normalised tokens, and the experts' sorted and activated rows; attention and router need theirs again.
TEST(Fp8Experts, CastsTakeMemory) {
  const auto activations = [](const Scenario& scenario) {
    const Dag dag = lowered(scenario);
    return memory_use(dag, simulate(dag).timeline)[0].activations;
  };
  Scenario bf16 = fp8_experts(two_ranks);
  bf16.training.precision = DType::bf16;
  const Bytes weights = 64 * 32 + 32 * 32 + local_experts * (2 * inner * hidden + inner * hidden);
  const Bytes casts = 16 * (32 + 32) + rows * (hidden + inner);
  const Bytes dropped = 2 * (16 * 32 + rows * (hidden + inner));
  EXPECT_EQ(activations(fp8_experts(two_ranks)),
            activations(bf16) + layers * (2 * weights + casts - dropped + scale * (2 * 4 + 4)));
}

const std::string on_blackwell = "cluster.preset=dgx-b200 training.framework=megatron-core ";

class CastOnce : public testing::TestWithParam<const char*> {};

TEST_P(CastOnce, ShardedStepIsTheUnshardedStep) { EXPECT_LT(largest_difference(tiny_fp8(on_blackwell + GetParam())), 1e-5); }

INSTANTIATE_TEST_SUITE_P(Meshes, CastOnce,
                         testing::Values("parallelism.tp=2 parallelism.sp=true parallelism.pp=2",
                                         "parallelism.tp=2 parallelism.sp=true training.overlap.tp=true",
                                         "parallelism.dp=2 training.fp8_param_gather=true training.recipe=current",
                                         "model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 parallelism.dp=2 "
                                         "parallelism.ep=2"));

// Half of what casts both ways write, where there is one scale; and never of blocks, which follow a direction.
TEST(Fp8Copies, AreOneOnBlackwell) {
  const std::string hopper = "training.framework=megatron-core ";
  for (const char* recipe : {"delayed", "current"}) {
    const std::string name = std::string("training.recipe=") + recipe;
    EXPECT_EQ(2 * cast_bytes(lowered(tiny_fp8(on_blackwell + name))), cast_bytes(lowered(tiny_fp8(hopper + name)))) << recipe;
  }
  for (const char* recipe : {"blockwise", "mxfp8"}) {
    const std::string name = std::string("training.recipe=") + recipe;
    EXPECT_EQ(cast_bytes(lowered(tiny_fp8(on_blackwell + name))), cast_bytes(lowered(tiny_fp8(hopper + name)))) << recipe;
  }
}

// Megatron-Core, of whose shards of the sequence each rank casts its own before they are gathered.
Scenario gathered_casts(const std::string& overrides) {
  return tiny_fp8("training.framework=megatron-core parallelism.tp=2 parallelism.sp=true " + overrides);
}

class GatheredCasts : public testing::TestWithParam<const char*> {};

TEST_P(GatheredCasts, ShardedStepIsTheUnshardedStep) { EXPECT_LT(largest_difference(gathered_casts(GetParam())), 1e-5); }

TEST_P(GatheredCasts, FoldedTimesAreTheUnfoldedOnes) { EXPECT_GE(expect_equal_when_folded(gathered_casts(GetParam())), 1U); }

INSTANTIATE_TEST_SUITE_P(Meshes, GatheredCasts,
                         testing::Values("training.recipe=delayed", "training.recipe=current", "training.recipe=mxfp8",
                                         "training.recipe=current training.overlap.tp=true",
                                         "training.recipe=blockwise training.overlap.tp=true",
                                         "training.recipe=delayed training.overlap.tp=true training.recompute=full",
                                         "training.recipe=delayed training.recompute=[norm,activation,mlp]",
                                         "training.recipe=mxfp8 training.schedule=zb-h1 parallelism.pp=2",
                                         "training.recipe=delayed parallelism.sp=false"));

// Of shards of [16, 32] on two ranks, 4 layers and 8 micro-batches: a byte and not two for an element, and the scale. Forward the
// inputs of two column-parallel products; backward these again, and two gradients. What blocks scale is there in both directions,
// with a scale of a byte for 32 elements: inputs by rows forward and by columns backward, gradients both ways.
TEST(Fp8Gathers, MoveCasts) {
  const std::size_t times = 4 * 8;
  const Bytes head = 8 * 2 * 16 * 32, tensor = 16 * 32 + scale, blocks = 16 * 32 + 16 * 32 / 32;
  const auto gathers = [](const std::string& recipe, const std::string& phase) {
    return volumes_of(lowered(gathered_casts("training.recipe=" + recipe)), 0).at("all_gather tp " + phase);
  };
  for (const char* recipe : {"delayed", "current"}) {
    EXPECT_EQ(gathers(recipe, "forward"), (Volume{2 * times + 8, static_cast<Bytes>(2 * times) * tensor + head})) << recipe;
    EXPECT_EQ(gathers(recipe, "backward-input").count, 4 * times + 2 * 8) << recipe;  // and the embedding's and the head's
  }
  EXPECT_EQ(gathers("mxfp8", "forward"), (Volume{2 * times + 8, static_cast<Bytes>(2 * times) * blocks + head}));
  EXPECT_EQ(gathers("mxfp8", "backward-input").count, 6 * times + 2 * 8);
}

// Where one scale is the tensor's and products read rows, a byte is read and one written for each element of what was gathered:
// two inputs and two gradients.
TEST(Fp8Gathers, AreTransposedWhereProductsReadRows) {
  const auto transposes = [](const std::string& overrides) {
    const Dag dag = lowered(gathered_casts(overrides));
    std::pair<std::size_t, Bytes> found{0, 0};
    for (TaskId id = 0; id < dag.tasks.size(); ++id) {
      if (dag.name_of_task(id) != "transpose" || dag.tasks[id].rank != 0) continue;
      ++found.first;
      found.second += cost_of(dag, id).bytes;
    }
    return found;
  };
  const std::size_t times = 4 * 8;
  EXPECT_EQ(transposes("training.recipe=current"), std::pair(4 * times, static_cast<Bytes>(4 * times) * 2 * (16 * 32 + scale)));
  EXPECT_EQ(transposes("training.recipe=current cluster.preset=dgx-b200").first, 0U);
  EXPECT_EQ(transposes("training.recipe=mxfp8").first, 0U);
}

// A norm writes its output in fp8 where the scale is known beforehand: the casts of two inputs of each layer cost nothing.
TEST(Fp8Norms, CastWhatLinearLayersMultiply) {
  for (const char* sp : {"true", "false"}) {
    const auto free_casts = [&](const std::string& recipe) {
      const Dag dag = lowered(gathered_casts("parallelism.sp=" + std::string(sp) + " training.recipe=" + recipe));
      std::size_t count = 0;
      for (TaskId id = 0; id < dag.tasks.size(); ++id)
        count += dag.tasks[id].op == OpKind::cast && cost_of(dag, id).bytes == 0 ? 1 : 0;
      return count;
    };
    EXPECT_EQ(free_casts("delayed"), 2U * 4 * 8 * 2) << sp;  // layers, micro-batches, ranks
    EXPECT_EQ(free_casts("current"), 0U) << sp;
  }
}

class Fp8Attention : public testing::TestWithParam<const char*> {};

TEST_P(Fp8Attention, ShardedStepIsTheUnshardedStep) {
  EXPECT_LT(largest_difference(tiny_fp8(std::string("training.fp8_attention=true ") + GetParam())), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Meshes, Fp8Attention,
                         testing::Values("parallelism.tp=2 parallelism.sp=true parallelism.pp=2",
                                         "parallelism.cp=2 training.recompute=selective",
                                         "parallelism.cp=2 parallelism.cp_method=ulysses training.recompute=full",
                                         "parallelism.cp=2 parallelism.cp_method=all-gather",
                                         "training.recipe=current training.first_last_layers_bf16=true parallelism.dp=2"));

// 16 tokens of 8 query heads and 4 key-value heads of 4: q, k and v in a byte a number and a scale, the output and its gradient
// in bf16 and in fp8, gradients in bf16; one fp32 for each query and head.
TEST(AttentionInFp8, ReadsItsOperandsInFp8) {
  const Dag dag = lowered(tiny_fp8("training.fp8_attention=true training.recipe=current training.first_last_layers_bf16=true"));
  const Bytes q = 16 * 32, kv = 16 * 16, lse = 4 * 8 * 16, scaled = 3 * scale + q + 2 * kv;
  std::size_t found = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (task.op != OpKind::attention && task.op != OpKind::attention_backward) continue;
    const bool in_fp8 = task.layer == 1 || task.layer == 2;
    EXPECT_EQ(cost_of(dag, id).math, in_fp8 ? DType::f8 : DType::bf16);
    if (!in_fp8) continue;
    ++found;
    EXPECT_EQ(cost_of(dag, id).bytes,
              task.op == OpKind::attention ? scaled + 2 * q + lse : scaled + 2 * q + lse + (q + scale) + 2 * (q + 2 * kv));
  }
  EXPECT_EQ(found, 2U * 2 * 8);  // layers, passes, micro-batches
}

// Four casts more for each of four layers and eight micro-batches: q, k, v and the output's gradient.
TEST(AttentionInFp8, CastsItsOperandsOnce) {
  const auto casts = [](const std::string& overrides) {
    const Dag dag = lowered(tiny_fp8(overrides));
    return std::ranges::count(dag.tasks, OpKind::cast, &Task::op);
  };
  EXPECT_EQ(casts("training.fp8_attention=true"), casts("") + 4 * 4 * 8);
}

class Fp8OutputProjection : public testing::TestWithParam<const char*> {};

constexpr const char* cast_head = "training.recipe=mxfp8 training.fp8_output_proj=true ";

TEST_P(Fp8OutputProjection, ShardedStepIsTheUnshardedStep) {
  EXPECT_LT(largest_difference(tiny_fp8(std::string(cast_head) + GetParam())), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Meshes, Fp8OutputProjection,
                         testing::Values("parallelism.tp=2 parallelism.sp=true parallelism.pp=2",
                                         "parallelism.tp=2 parallelism.dp=2 parallelism.zero=3",
                                         "model.mtp_depth=1 parallelism.pp=2 parallelism.zero=1 training.fp8_param_gather=true",
                                         "training.first_last_layers_bf16=true parallelism.dp=2"));

// The head's operands are cast once: its weight in a step, its input and the logits' gradient for each of eight micro-batches.
TEST(OutputProjectionInFp8, MultipliesWhatIsCast) {
  std::map<bool, std::ptrdiff_t> casts;
  for (const bool in_fp8 : {false, true}) {
    const Dag dag = lowered(tiny_fp8("training.recipe=mxfp8" + std::string(in_fp8 ? " training.fp8_output_proj=true" : "")));
    casts[in_fp8] = std::ranges::count(dag.tasks, OpKind::cast, &Task::op);
    std::ptrdiff_t products = 0;
    for (TaskId id = 0; id < dag.tasks.size(); ++id) {
      if (dag.tasks[id].op != OpKind::gemm || dag.name_of_task(id) != "LM head") continue;
      EXPECT_EQ(cost_of(dag, id).math, in_fp8 ? DType::f8 : DType::bf16);
      ++products;
    }
    EXPECT_EQ(products, 3 * 8);
  }
  EXPECT_EQ(casts[true], casts[false] + 1 + 2 * 8);
}

// Of each recipe, for the MLP's first product [96, 32] of 16 tokens: a tensor of n numbers has n bytes and its scales.
TEST(Fp8Step, RecipesHaveTheirScales) {
  const auto bytes_of_scales = [](const std::string& recipe, const std::string& phase_of) {
    const Dag dag = lowered(tiny_fp8("training.recipe=" + recipe));
    std::map<std::int64_t, Bytes> by_elements;
    for (const Buffer& buffer : dag.buffers)
      if (buffer.dtype == DType::f8 && buffer.scaling != Scaling::none)
        by_elements[buffer.shape.elements()] = buffer.bytes() - buffer.shape.elements();
    return by_elements.at(phase_of == "weight" ? 96 * 32 : 16 * 96);
  };
  for (const char* recipe : {"delayed", "current"}) {
    EXPECT_EQ(bytes_of_scales(recipe, "weight"), 4);
    EXPECT_EQ(bytes_of_scales(recipe, "gradient"), 4);
  }
  EXPECT_EQ(bytes_of_scales("mxfp8", "weight"), 96 * 32 / 32);
  EXPECT_EQ(bytes_of_scales("mxfp8", "gradient"), 16 * 96 / 32);
  EXPECT_EQ(bytes_of_scales("blockwise", "weight"), 4);  // less than 128 x 128
  EXPECT_EQ(bytes_of_scales("blockwise", "gradient"), 4 * 16 * 96 / 128);
}

// What is timed moves the bytes that are reported, scales among them.
TEST(Fp8Step, KernelsAreTimedWithTheirScales) {
  for (const char* recipe : {"current", "blockwise", "mxfp8"}) {
    const Dag dag = lowered(tiny_fp8(std::string("training.recipe=") + recipe));
    for (TaskId id = 0; id < dag.tasks.size(); ++id) {
      if (operation(dag.tasks[id].op).cost == nullptr) continue;
      EXPECT_EQ(cost_of(kernel_of(dag, id)).bytes, cost_of(dag, id).bytes) << recipe << " " << dag.name_of_task(id);
    }
  }
}

}  // namespace
}  // namespace tandem::studies::fp8_test
