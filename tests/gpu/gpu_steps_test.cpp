// Steps of many virtual ranks on one GPU against the unsharded model on the host in fp32.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "studies/step/executed_step.h"
#include "studies/step/verification.h"
#include "tests/end_to_end/tiny.h"
#include "tests/gpu/gpu_runner.h"

namespace tandem::studies::gpu_steps_test {
namespace {

struct GpuMesh {
  const char* overrides;
};
void PrintTo(const GpuMesh& mesh, std::ostream* out) { *out << mesh.overrides; }

class GpuStepOf : public testing::TestWithParam<std::tuple<GpuMesh, const char*>> {
 protected:
  void SetUp() override {
    if (const std::string reason = no_gpu_reason(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

void expect_the_unsharded_models(const ExecutedStep& step, const Scenario& scenario) {
  const StepDifference difference = compare_with_unsharded(step, scenario);
  const auto worst = [&](double TensorDifference::*part) {
    const auto found = std::ranges::max_element(difference.tensors, {}, part);
    return "'" + found->tensor + "' by " + std::to_string((*found).*part * 100) + " %";
  };
  EXPECT_TRUE(verification_tolerance(scenario.training.precision).allows(difference))
      << "loss off by " << difference.loss * 100 << " %, of gradients most " << worst(&TensorDifference::gradient)
      << ", of weights " << worst(&TensorDifference::weight);
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, GpuStepOf,
    testing::Combine(
        testing::Values(GpuMesh{"parallelism.dp=1"}, GpuMesh{"parallelism.tp=2 parallelism.sp=true"},
                        GpuMesh{"parallelism.tp=4 parallelism.dp=2 parallelism.sp=true"},
                        GpuMesh{"parallelism.dp=4 parallelism.zero=1"}, GpuMesh{"parallelism.dp=4 parallelism.zero=2"},
                        GpuMesh{"parallelism.dp=4 parallelism.zero=3"}, GpuMesh{"parallelism.pp=2 parallelism.dp=2"},
                        GpuMesh{"parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b"},
                        GpuMesh{"parallelism.pp=2 training.schedule=zb-h1"}, GpuMesh{"parallelism.cp=2"},
                        GpuMesh{"parallelism.cp=4 parallelism.cp_method=all-gather"},
                        GpuMesh{"parallelism.cp=2 parallelism.cp_method=ulysses"},
                        GpuMesh{"parallelism.tp=2 parallelism.sp=true parallelism.pp=2 parallelism.dp=2 parallelism.zero=1"},
                        GpuMesh{"parallelism.dp=2 training.recompute=full"},
                        GpuMesh{R"(model.moe={"experts":8,"top_k":2,"ffn":64} parallelism.dp=4 parallelism.ep=4)"}),
        testing::Values("fp32", "bf16")));

// Heads of 64 go to cuDNN and to the tensor cores' own kernels, those of 4 above to neither.
INSTANTIATE_TEST_SUITE_P(
    WideHeads, GpuStepOf,
    testing::Combine(
        testing::Values(GpuMesh{"model.hidden=256 model.head_dim=64 model.heads=4 model.kv_heads=2 parallelism.dp=1"},
                        GpuMesh{"model.hidden=256 model.head_dim=64 model.heads=4 model.kv_heads=2 parallelism.tp=2 "
                                "parallelism.sp=true parallelism.dp=2 parallelism.zero=3"},
                        GpuMesh{"model.hidden=256 model.head_dim=64 model.heads=4 model.kv_heads=2 training.sequence=128 "
                                "parallelism.pp=2 parallelism.cp=2"}),
        testing::Values("bf16", "fp16", "fp8")));

TEST_P(GpuStepOf, IsTheUnshardedModels) {
  const auto& [mesh, precision] = GetParam();
  const std::string overrides = std::string(mesh.overrides) + " training.precision=" + precision;
  const Scenario scenario = tiny_model(words(overrides));
  for (const GraphScope graphs : {GraphScope::none, GraphScope::layer, GraphScope::full}) {
    ExecutedStep step(scenario, "test", {.backend = "cuda", .graphs = graphs});
    step.verify_collectives();  // throws where one is wrong
    step.execute();
    expect_the_unsharded_models(step, scenario);
  }
}

/// Under compute-sanitizer, which takes many times as long.
TEST(GpuSmallStep, TouchesItsMemoryAlone) {
  if (const std::string reason = no_gpu_reason(); !reason.empty()) GTEST_SKIP() << reason;
  const Scenario scenario =
      tiny_model(words("model.layers=1 training.global_batch=2 parallelism.tp=2 parallelism.sp=true "
                       "training.precision=bf16"));
  ExecutedStep step(scenario, "test", {.backend = "cuda", .graphs = GraphScope::none});
  step.verify_collectives();
  step.execute();
  expect_the_unsharded_models(step, scenario);
}

}  // namespace
}  // namespace tandem::studies::gpu_steps_test
