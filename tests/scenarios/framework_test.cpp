#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/reading/load.h"
#include "scenarios/reading/presets.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::scenarios::framework_test {
namespace {

using testing::HasSubstr;

Scenario with(const std::vector<std::string>& overrides) { return parse_scenario(base_text(), "s.yaml", overrides); }

std::string refusal(const std::vector<std::string>& overrides) {
  try {
    with(overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Framework, IsGenericUnlessNamed) {
  const Software software = with({}).software;
  EXPECT_EQ(software.name, "generic");
  EXPECT_TRUE(software.issues_for_free());
  for (const auto& pass : software.extra)
    for (const ExtraWork& extra : pass) EXPECT_EQ(extra, ExtraWork{});
}

TEST(Framework, EveryPresetIsReadAndNamed) {
  const std::vector<std::string> names = preset_names(PresetKind::framework);
  EXPECT_GE(names.size(), 11U);
  for (const std::string& name : names) {
    const Software software = with({"training.framework=" + name}).software;
    EXPECT_EQ(software.name, name);
    EXPECT_EQ(software.issues_for_free(), name == "generic") << name;
  }
}

TEST(Framework, AsTakesFieldsFromAnother) {
  const Software old = with({"training.framework=megatron-2021"}).software;
  const Software next = with({"training.framework=megatron-2022"}).software;
  EXPECT_EQ(next.beside(OpKind::add, Pass::forward), old.beside(OpKind::add, Pass::forward));
  EXPECT_GT(old.beside(OpKind::gemm, Pass::weights).bytes, 0);
  EXPECT_EQ(next.beside(OpKind::gemm, Pass::weights).bytes, 0);
}

TEST(Framework, ItsDefaultsGiveWayToTheScenario) {
  EXPECT_EQ(with({"training.framework=megatron-core"}).training.grad_dtype, DType::f32);
  EXPECT_EQ(with({"training.framework=nemo"}).training.grad_dtype, DType::bf16);
  EXPECT_EQ(with({"training.framework=nemo", "training.grad_dtype=fp32"}).training.grad_dtype, DType::f32);
  EXPECT_FALSE(with({"training.framework=megatron-2021"}).training.overlap_dp);
  EXPECT_FALSE(with({"training.framework=torchtitan"}).training.overlap_pp);
  EXPECT_TRUE(with({"training.framework=torchtitan", "training.overlap.pp=true"}).training.overlap_pp);
  EXPECT_EQ(with({"training.framework=deepspeed", "parallelism.zero=3"}).parallelism.gather_unit, GatherUnit::weight);
  EXPECT_EQ(with({"training.framework=deepspeed-2023", "parallelism.zero=3"}).parallelism.gather_unit, GatherUnit::layer);
}

TEST(Framework, Fp16ReplacesWhatGoesWithIt) {
  EXPECT_EQ(with({"training.framework=megatron-2021", "training.precision=fp16"}).training.grad_dtype, DType::f16);
  EXPECT_EQ(with({"training.framework=megatron-2021", "training.precision=bf16"}).training.grad_dtype, DType::f32);
  EXPECT_EQ(with({"training.framework=megatron-2022", "training.precision=fp16"}).training.grad_dtype, DType::f32);
  const Software in_fp16 = with({"training.framework=megatron-2021", "training.precision=fp16"}).software;
  const Software in_bf16 = with({"training.framework=megatron-2021", "training.precision=bf16"}).software;
  EXPECT_EQ(in_fp16.beside(OpKind::adam, Pass::optimizer).kernels, in_bf16.beside(OpKind::adam, Pass::optimizer).kernels + 1);
}

TEST(Framework, CompiledReplacesWhatTorchCompileFuses) {
  const Software eager = with({"training.framework=torchtitan"}).software;
  const Software compiled = with({"training.framework=torchtitan", "training.compiled=true"}).software;
  EXPECT_GT(eager.beside(OpKind::norm, Pass::forward).kernels, compiled.beside(OpKind::norm, Pass::forward).kernels);
  EXPECT_EQ(eager.beside(OpKind::adam, Pass::optimizer), compiled.beside(OpKind::adam, Pass::optimizer));
  EXPECT_THAT(refusal({"training.compiled=true"}), HasSubstr("training.compiled needs a framework"));
  EXPECT_THAT(refusal({"training.compiled=true", "training.framework=megatron-2021"}),
              HasSubstr("does not say what torch.compile"));
  for (const char* no_boolean : {"perhaps", "\"true\"", "[true]"})
    EXPECT_THAT(refusal({std::string("training.compiled=") + no_boolean, "training.framework=torchtitan"}),
                HasSubstr("expected true or false"));
}

TEST(Framework, AFusedCrossEntropyKeepsNoLogitsInFp32) {
  for (const std::string name : {"megatron-core", "torchtitan"}) {
    const Software unfused = with({"training.framework=" + name}).software;
    const Software fused = with({"training.framework=" + name, "training.cross_entropy_fusion=true"}).software;
    EXPECT_GT(unfused.beside(OpKind::cross_entropy_sum, Pass::forward).holds, 0);
    EXPECT_EQ(fused.beside(OpKind::cross_entropy_sum, Pass::forward).holds, 0);
    EXPECT_EQ(fused.beside(OpKind::cross_entropy_backward, Pass::backward).holds, 0);
    EXPECT_EQ(fused.beside(OpKind::norm, Pass::forward), unfused.beside(OpKind::norm, Pass::forward));
  }
  EXPECT_THAT(refusal({"training.cross_entropy_fusion=true"}), HasSubstr("training.cross_entropy_fusion needs a framework"));
  EXPECT_THAT(refusal({"training.cross_entropy_fusion=true", "training.framework=megatron-2021"}),
              HasSubstr("does not say what a fused cross entropy makes of it"));
}

TEST(Framework, ChoosesTheAttentionUnlessTheScenarioDoes) {
  const auto attention = [](const std::vector<std::string>& overrides) {
    return with(overrides).cluster.gpu.efficiency.attention_kernel;
  };
  EXPECT_EQ(attention({"training.framework=megatron-2021"}), AttentionKernel::unfused);
  EXPECT_EQ(attention({"training.framework=megatron-core"}), AttentionKernel::cudnn);
  EXPECT_EQ(attention({"training.framework=megatron-core", "training.attention=flash-3"}), AttentionKernel::flash_3);
  EXPECT_THAT(refusal({"training.attention=flash-3", "cluster={preset: dgx-a100, gpus: 32}"}), HasSubstr("is not known"));
}

TEST(Framework, Fp4IsCastByItsOwnKernels) {
  const Scenario scenario = with({"training.framework=megatron-core", "training.precision=fp4", "cluster.gpu=b200"});
  EXPECT_EQ(scenario.training.recipe, Recipe::nvfp4);
  EXPECT_EQ(scenario.software.kernel_per_expert, std::vector{OpKind::grouped_gemm});
  // r2 for the maxima, r2 for the transformed columns, scales of 1/16 byte read and written by rows and by columns
  for (const Pass pass : {Pass::forward, Pass::backward})
    EXPECT_EQ(scenario.software.beside(OpKind::cast, pass).bytes, 2 + 2 + 2 * 2 / 16.0);
  EXPECT_EQ(with({"training.framework=megatron-core", "cluster.gpu=b200"}).software.beside(OpKind::cast, Pass::forward),
            ExtraWork{});
  // torchao reads a tensor twice, for the maxima of both ways and to quantize both ways, and writes scales where they belong.
  const Scenario torchao = with({"training.framework=torchtitan", "training.precision=fp4", "cluster.gpu=b200"});
  for (const Pass pass : {Pass::forward, Pass::backward}) EXPECT_EQ(torchao.software.beside(OpKind::cast, pass).bytes, 2);
  EXPECT_LT(torchao.software.beside(OpKind::cast, Pass::forward).kernels,
            torchao.software.beside(OpKind::cast, Pass::backward).kernels);  // random numbers for gradients
}

TEST(Framework, Fp8RecipesQuantizeInDifferentWays) {
  const auto cast = [](const char* recipe) {
    return with({"training.framework=megatron-core", "training.precision=fp8", std::string("training.fp8_recipe=") + recipe})
        .software;
  };
  EXPECT_EQ(cast("delayed").beside(OpKind::cast, Pass::forward), ExtraWork{});
  EXPECT_EQ(cast("delayed").kernel_per_expert, std::vector{OpKind::grouped_gemm});
  EXPECT_EQ(cast("current").beside(OpKind::cast, Pass::forward).bytes, 2);  // the tensor is read once more, for its maximum
  EXPECT_EQ(cast("current").kernel_per_expert, (std::vector{OpKind::grouped_gemm, OpKind::cast}));
  EXPECT_LT(cast("mxfp8").beside(OpKind::cast, Pass::backward).bytes, 1);
  EXPECT_THAT(refusal({"training.framework=megatron-core", "training.fp8_recipe=current"}),
              HasSubstr("recipe current with precision bf16, where nothing is cast to fp8; expected precision fp8"));
  EXPECT_THAT(refusal({"training.fp8_recipe=currrent"}), HasSubstr("did you mean `current`?"));
  EXPECT_EQ(cast("tensorwise").beside(OpKind::cast, Pass::forward).bytes, 2);
}

TEST(Framework, BiasesOfExpertsAreWeightedOneByOne) {
  const std::string framework = "training.framework=megatron-core";
  const auto software = [&](const char* biased, const std::string& more) {
    const std::string moe = std::string("model.moe={experts: 8, top_k: 2, ffn: 1024, linear_bias: ") + biased + "}";
    return with({framework, moe, more}).software;
  };
  const Software without = software("false", "training.cuda_graph=none"), biased = software("true", "training.cuda_graph=none");
  EXPECT_EQ(without.beside(OpKind::add_bias, Pass::forward), ExtraWork{});
  EXPECT_EQ(without.waits_for, std::vector{OpKind::route});
  // times and plus, of which elements are loaded one by one, joined r4 w4, to bf16 r4 w2, where the operation itself has r2 w2
  EXPECT_EQ(biased.beside(OpKind::add_bias, Pass::forward).by_element, 2);
  EXPECT_EQ(biased.beside(OpKind::add_bias, Pass::forward).bytes, 8 + 6 - 4);
  EXPECT_EQ(biased.waits_for, (std::vector{OpKind::route, OpKind::activation}));
  EXPECT_THAT(biased.kernel_per_expert, testing::Contains(OpKind::bias_gradient));
  EXPECT_TRUE(biased.fuses_bias);
  const Software whole = software("true", "training.cuda_graph=full");
  EXPECT_EQ(whole.beside(OpKind::add_bias, Pass::forward), ExtraWork{});
  EXPECT_EQ(with({framework, "model.rope_scaling=yarn"}).software.beside(OpKind::split_heads, Pass::forward).bytes, 9);
  EXPECT_EQ(with({framework, "model.attention_sinks=true"}).software.beside(OpKind::split_heads, Pass::forward), ExtraWork{});
  EXPECT_EQ(with({framework}).software.beside(OpKind::split_heads, Pass::forward), ExtraWork{});
}

TEST(Framework, CudaGraphsSpareTheCpu) {
  const Software eager = with({"training.framework=megatron-core"}).software;
  const Software layers = with({"training.framework=megatron-core", "training.cuda_graph=attention"}).software;
  const Software whole = with({"training.framework=megatron-core", "training.cuda_graph=full"}).software;
  EXPECT_TRUE(eager.captured.empty());
  EXPECT_THAT(layers.captured, testing::Contains(OpKind::attention));
  EXPECT_EQ(layers.issue, eager.issue);
  EXPECT_FALSE(eager.issues_for_free());
  EXPECT_TRUE(whole.issues_for_free());
  for (const std::vector<std::string>& unknown : {std::vector<std::string>{}, {"training.framework=megatron-2021"}})
    for (const char* graph : {"attention", "full"}) {
      std::vector<std::string> overrides = unknown;
      overrides.push_back(std::string("training.cuda_graph=") + graph);
      EXPECT_THAT(refusal(overrides), HasSubstr("with a framework that does not say what it captures"));
    }
}

TEST(Framework, NobodyWaitsForRowsThatArePaddedToACapacity) {
  const std::string moe = "model.moe={experts: 8, top_k: 2, ffn: 1024}";
  EXPECT_EQ(with({"training.framework=megatron-core", moe}).software.waits_for, std::vector{OpKind::route});
  EXPECT_TRUE(with({"training.framework=megatron-core", moe, "model.moe.capacity_factor=1"}).software.waits_for.empty());
  EXPECT_FALSE(with({"training.framework=megatron-core", moe, "model.moe.capacity_factor=1", "model.moe.pad_to_capacity=false"})
                   .software.waits_for.empty());
}

TEST(Framework, GraphsOfAWholeStepKnowNoRowsOfExperts) {
  const auto apart = [](const std::vector<std::string>& more) {
    std::vector<std::string> overrides{"training.framework=megatron-core", "model.moe={experts: 8, top_k: 2, ffn: 1024}"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    return with(overrides).software.kernel_per_expert;
  };
  EXPECT_EQ(apart({}), (std::vector{OpKind::grouped_gemm, OpKind::cast}));
  EXPECT_EQ(apart({"training.cuda_graph=attention"}), apart({}));
  EXPECT_TRUE(apart({"training.cuda_graph=full"}).empty());
  EXPECT_EQ(apart({"training.cuda_graph=full", "model.moe.capacity_factor=1"}), apart({}));  // as many rows as places
}

TEST(Framework, GraphsOfAWholeStepFuseExpertsInMxfp8) {
  const auto on = [](const std::vector<std::string>& more) {
    std::vector<std::string> overrides{"training.framework=megatron-core", "model.moe={experts: 8, top_k: 2, ffn: 1024}",
                                       "training.precision=fp8"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    return with(overrides).software.fuses_experts;
  };
  const std::string mxfp8 = "training.recipe=mxfp8", whole = "training.cuda_graph=full";
  EXPECT_EQ(on({mxfp8, whole}), std::vector{Architecture::blackwell});
  EXPECT_TRUE(on({mxfp8}).empty());
  EXPECT_TRUE(on({mxfp8, "training.cuda_graph=attention"}).empty());
  EXPECT_TRUE(on({mxfp8, whole, "model.moe.capacity_factor=1"}).empty());
  EXPECT_TRUE(on({"training.recipe=current", whole}).empty());
}

TEST(Framework, TheCpuWaitsForWhatHybridEpBrings) {
  const auto waits = [](const std::vector<std::string>& more) {
    std::vector<std::string> overrides{"model.moe={experts: 8, top_k: 2, ffn: 1024}", "parallelism.ep=2"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    return with(overrides).software.waits_for_dispatch;
  };
  const std::string hybrid = "parallelism.dispatcher=hybridep", framework = "training.framework=megatron-core";
  EXPECT_TRUE(waits({hybrid, framework}));
  EXPECT_FALSE(waits({"parallelism.dispatcher=deepep", framework}));
  EXPECT_FALSE(waits({hybrid}));  // where kernels are issued in no time
  EXPECT_FALSE(waits({hybrid, framework, "model.moe.capacity_factor=1"}));
  EXPECT_FALSE(waits({hybrid, framework, "training.cuda_graph=full"}));
}

TEST(Framework, FieldsOfOnesOwn) {
  const Software software =
      with({"training.framework={issue_us: {forward: 7}, forward: {norm: {kernels: 2, bytes: 12}}, "
            "waits_for: [receive], sequence_copies: 2, reserved_GB: 1.5, context_GB: 0.5, "
            "workspaces_MiB: {hopper: 3}, placeholder_gradients: true, expandable_segments: true, moves_weights: true, "
            "tensor_lists: true}"})
          .software;
  EXPECT_EQ(software.name, "generic");
  EXPECT_DOUBLE_EQ(software.issue.forward, 7e-6);
  EXPECT_EQ(software.beside(OpKind::norm, Pass::forward), (ExtraWork{2, 12}));
  EXPECT_EQ(software.beside(OpKind::norm, Pass::backward), ExtraWork{});
  EXPECT_EQ(software.waits_for, std::vector{OpKind::receive});
  EXPECT_EQ(software.sequence_copies, 2);
  EXPECT_EQ(software.reserved, 1'500'000'000);
  EXPECT_EQ(software.context, 500'000'000);
  EXPECT_EQ(software.workspaces[static_cast<std::size_t>(Architecture::hopper)], 3 << 20);
  EXPECT_EQ(software.workspaces[static_cast<std::size_t>(Architecture::ampere)], 0);
  EXPECT_TRUE(software.placeholder_gradients);
  EXPECT_TRUE(software.expandable_segments);
  EXPECT_TRUE(software.moves_weights);
  EXPECT_TRUE(software.tensor_lists);
}

TEST(Framework, SaysWhatIsWrong) {
  EXPECT_THAT(refusal({"training.framework=megatron-cor"}), HasSubstr("did you mean `megatron-core`?"));
  EXPECT_THAT(refusal({"training.framework={forward: {norms: {kernels: 2}}}"}), HasSubstr("did you mean `norm`?"));
  EXPECT_THAT(refusal({"training.framework={forward: {all_reduce: {kernels: 2}}}"}), HasSubstr("is communication"));
  EXPECT_THAT(refusal({"training.framework={forward: {norm: {kernels: -1}}}"}), HasSubstr("a number from 0 to 1000"));
  EXPECT_THAT(refusal({"training.framework={waits_for: [recieve]}"}), HasSubstr("did you mean `receive`?"));
}

}  // namespace
}  // namespace tandem::scenarios::framework_test
