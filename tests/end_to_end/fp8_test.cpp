// Training in fp8: the layers' linear GEMMs take fp8 operands, everything else stays as it is in bf16.

#include <gtest/gtest.h>

#include "scenarios/lowering/lower.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem {
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

}  // namespace
}  // namespace tandem
