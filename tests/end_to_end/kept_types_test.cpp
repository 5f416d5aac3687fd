// What is kept in smaller types: the same step, in so many bytes less.

#include <gtest/gtest.h>

#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::kept_types_test {
namespace {

class KeptTypes : public testing::TestWithParam<const char*> {};

TEST_P(KeptTypes, ShardedStepIsTheUnshardedStep) { EXPECT_LT(largest_difference(tiny_model(words(GetParam()))), 1e-5); }

TEST_P(KeptTypes, FoldedTimesAreTheUnfoldedOnes) { EXPECT_GE(expect_equal_when_folded(tiny_cluster(words(GetParam()))), 1U); }

INSTANTIATE_TEST_SUITE_P(
    Meshes, KeptTypes,
    testing::Values("training.fp8_activation_input=true parallelism.tp=2 parallelism.pp=2 parallelism.dp=2",
                    "training.fp8_activation_input=true training.recompute=[activation] parallelism.tp=2 parallelism.sp=true",
                    "training.fp8_activation_input=true training.recompute=[mlp] parallelism.dp=2 training.moment_dtype=bf16",
                    "training.fp8_activation_input=true training.recompute=full parallelism.dp=2 model.gated=false",
                    "training.fp8_activation_input=true model.moe.experts=4 model.moe.top_k=2 model.moe.ffn=24 "
                    "model.moe.shared_experts=1 parallelism.dp=2 parallelism.ep=2 training.recompute=[norm,activation]",
                    "training.moment_dtype=bf16 parallelism.dp=4 parallelism.zero=3 training.precision=bf16",
                    "training.moment_dtype=fp8 training.second_moment_dtype=bf16 training.master_dtype=fp16 parallelism.dp=2 "
                    "parallelism.pp=2"));

Bytes bytes_of(const Scenario& scenario, BufferKind kind) {
  const Dag dag = lower(scenario, make_world(scenario, true));
  Bytes bytes = 0;
  for (BufferId id = 0; id < dag.buffers.size(); ++id)
    if (dag.buffers[id].kind == kind && dag.buffers[id].base == id) bytes += dag.buffers[id].bytes();
  return bytes;
}

struct States {
  std::string fields;
  Bytes bytes;  ///< of a parameter that a rank updates: master weight, first and second moment
};

TEST(StatesOfTheOptimizer, TakeTheBytesOfTheirTypes) {
  const std::string mesh = "parallelism.dp=2 training.precision=bf16 ";
  const Bytes whole = bytes_of(tiny_cluster(words(mesh)), BufferKind::optimizer);
  EXPECT_GT(whole, 0);
  for (const auto& [fields, bytes] :
       {States{"training.moment_dtype=bf16", 4 + 2 + 2}, States{"training.moment_dtype=fp8", 4 + 1 + 1},
        States{"training.moment_dtype=fp8 training.second_moment_dtype=bf16", 4 + 1 + 2},
        States{"training.second_moment_dtype=fp16", 4 + 4 + 2}, States{"training.master_dtype=fp16", 2 + 4 + 4},
        States{"training.master_dtype=fp16 training.moment_dtype=fp8", 2 + 1 + 1}}) {
    EXPECT_EQ((4 + 4 + 4) * bytes_of(tiny_cluster(words(mesh + fields)), BufferKind::optimizer), bytes * whole) << fields;
  }
}

/// Bytes that the updates of one rank move.
Bytes moved_by_updates(const Scenario& scenario) {
  const Dag dag = lower(scenario, make_world(scenario, false));
  Bytes bytes = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id)
    if (dag.tasks[id].op == OpKind::adam && dag.tasks[id].rank == 0) bytes += cost_of(dag, id).bytes;
  return bytes;
}

// Every state is read and written, the gradient (4) and the norm read, the weight (2) written.
TEST(StatesOfTheOptimizer, AreReadAndWrittenByTheUpdate) {
  const std::string mesh = "parallelism.dp=2 training.precision=bf16 ";
  const std::int64_t updated = bytes_of(tiny_cluster(words(mesh)), BufferKind::optimizer) / (4 + 4 + 4);
  const Bytes narrow = moved_by_updates(tiny_cluster(words(mesh + "training.master_dtype=fp16 training.moment_dtype=fp8")));
  const Bytes wide = moved_by_updates(tiny_cluster(words(mesh)));
  EXPECT_EQ(wide - narrow, 2 * updated * ((4 + 4 + 4) - (2 + 1 + 1)));
}

/// Bytes of activations that a kernel of the forward writes and one of a backward reads: what is kept.
Bytes kept(const Scenario& scenario) {
  const Dag dag = lower(scenario, make_world(scenario, true));
  std::vector<bool> forward(dag.buffers.size()), backward(dag.buffers.size());
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const bool forth = dag.tasks[id].phase == Phase::forward;
    for (const Operand& operand : dag.operands_of(id)) (forth ? forward : backward)[dag.buffers[operand.buffer].base] = true;
  }
  Bytes bytes = 0;
  for (BufferId id = 0; id < dag.buffers.size(); ++id)
    if (dag.buffers[id].kind == BufferKind::activation && forward[id] && backward[id]) bytes += dag.buffers[id].bytes();
  return bytes;
}

// SwiGLU reads 2 f numbers of each token in each layer: two bytes less for each of them, less one that is left.
TEST(ActivationInputInFp8, IsKeptInHalfTheBytes) {
  const std::string mesh = "training.precision=bf16 training.global_batch=1 training.recompute=[activation] ";
  const Scenario usual = tiny_cluster(words(mesh)), small = tiny_cluster(words(mesh + "training.fp8_activation_input=true"));
  const Bytes numbers = usual.model.layers * usual.training.sequence * 2 * usual.model.ffn;
  EXPECT_EQ(kept(usual) - kept(small), numbers);
}

}  // namespace
}  // namespace tandem::studies::kept_types_test
