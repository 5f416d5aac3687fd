// Parameters that are kept and gathered in fp8 or fp4: memory and bytes by closed form, and the same step.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/analysis/memory.h"
#include "runtime/host/unsharded.h"
#include "scenarios/lowering/lower.h"
#include "sim/simulate.h"
#include "studies/step/executed_step.h"
#include "studies/step/verification.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::param_gather_test {
namespace {

std::string gather_of(const std::string& recipe) {
  const std::string type = recipe == "nvfp4" ? "fp4" : "fp8";
  return "cluster.preset=dgx-b200 training.precision=" + type + " training.recipe=" + recipe + " training." + type +
         "_param_gather=";
}

Scenario tiny_gathered(const std::string& recipe, const std::string& overrides, bool on = true) {
  return tiny_cluster(words(gather_of(recipe) + (on ? "true " : "false ") + overrides));
}

Dag lowered(const Scenario& scenario) { return lower(scenario, make_world(scenario, false)); }

struct Case {
  const char* recipe;
  const char* overrides;
};

/// Relative to each tensor's largest element.
double largest_difference_of(const UnshardedTensors& some, const UnshardedTensors& others) {
  double largest = 0;
  for (const auto& [name, reference] : others) {
    const std::vector<float>& values = some.at(name).values;
    double difference = 0, magnitude = 0;
    for (std::size_t i = 0; i < reference.values.size(); ++i) {
      difference = std::max(difference, std::abs(double{values[i]} - double{reference.values[i]}));
      magnitude = std::max(magnitude, std::abs(double{reference.values[i]}));
    }
    if (difference > 0) largest = std::max(largest, difference / magnitude);
  }
  return largest;
}

class ParamGather : public testing::TestWithParam<Case> {};

TEST_P(ParamGather, ShardedStepIsTheUnshardedStep) {
  EXPECT_LT(largest_difference(tiny_gathered(GetParam().recipe, GetParam().overrides)), 1e-5);
}

// Rounded, too: what is kept is rounded where it is read, to the numbers that a copy in bf16 is cast to.
TEST_P(ParamGather, RoundsTheSameNumbers) {
  ExecutedStep kept(tiny_gathered(GetParam().recipe, GetParam().overrides), "test");
  ExecutedStep cast(tiny_gathered(GetParam().recipe, GetParam().overrides, false), "test");
  kept.execute();
  cast.execute();
  const UnshardedState one = gather_unsharded(kept.memory()), other = gather_unsharded(cast.memory());
  // The norm of gradients is summed by other buckets.
  EXPECT_LT(largest_difference_of(one.gradients, other.gradients), 1e-6);
  EXPECT_LT(largest_difference_of(one.weights, other.weights), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, ParamGather,
    testing::Values(Case{"delayed", "parallelism.dp=2"}, Case{"current", "parallelism.dp=2 parallelism.tp=2 parallelism.sp=true"},
                    Case{"blockwise", "parallelism.dp=2 parallelism.zero=2 parallelism.pp=2"},
                    Case{"mxfp8", "parallelism.dp=2 parallelism.pp=2"},
                    Case{"mxfp8", "parallelism.dp=2 training.first_last_layers_bf16=true training.recompute=full"},
                    Case{"nvfp4", "parallelism.dp=4 training.first_last_layers_bf16=true"},
                    Case{"nvfp4", "parallelism.tp=2 parallelism.sp=true training.overlap.tp=true parallelism.dp=2"},
                    Case{"current", "model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 parallelism.dp=2 parallelism.ep=2"},
                    Case{"mxfp8",
                         "model.moe.experts=4 model.moe.top_k=2 model.moe.ffn=32 model.moe.shared_experts=1 "
                         "parallelism.dp=2"},
                    Case{"current",
                         "model.moe.experts=4 model.moe.top_k=2 model.moe.ffn=32 model.moe.latent=12 parallelism.dp=2"},
                    Case{"mxfp8", "parallelism.pp=2 parallelism.dp=2 parallelism.pipeline_layout=Et|tttL"},
                    Case{"delayed", "parallelism.dp=3 parallelism.zero=2 training.global_batch=6 training.optimizer=muon"},
                    Case{"current", "training.framework=megatron-core parallelism.dp=2 training.optimizer=muon"},
                    Case{"blockwise", "parallelism.dp=2 training.optimizer=muon training.overlap.dp=false"},
                    Case{"nvfp4", "parallelism.tp=2 parallelism.sp=true parallelism.dp=2 training.optimizer=muon"}),
    [](const auto& test) { return std::string(test.param.recipe) + std::to_string(test.index); });

/// The weights that casts read or write, by their type.
std::map<DType, std::set<BufferId>> cast_weights(const Scenario& scenario) {
  const Dag dag = lowered(scenario);
  std::map<DType, std::set<BufferId>> weights;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.tasks[id].op != OpKind::cast) continue;
    for (const Operand& operand : dag.operands_of(id)) {
      const Buffer& buffer = dag.buffers[operand.buffer];
      if (buffer.kind == BufferKind::parameter) weights[buffer.dtype].insert(operand.buffer);
    }
  }
  return weights;
}

class ParamGatherLayers : public testing::TestWithParam<std::string> {};

// Layers with a state leave more of rounding than others (mamba_test.cpp, gated_delta_test.cpp).
TEST_P(ParamGatherLayers, StepIsTheUnshardedStep) {
  for (const char* recipe : {"current", "mxfp8", "nvfp4"})
    EXPECT_LT(largest_difference(tiny_gathered(recipe, GetParam() + " parallelism.dp=2")), 3e-4) << recipe;
}

// Whatever is cast once in a step is kept as it is cast.
TEST_P(ParamGatherLayers, KeepEveryWeightThatIsCast) {
  for (const char* recipe : {"blockwise", "mxfp8", "nvfp4"}) {
    const Scenario kept = tiny_gathered(recipe, GetParam() + " parallelism.dp=2"),
                   copied = tiny_gathered(recipe, GetParam() + " parallelism.dp=2", false);
    const auto with = cast_weights(kept), without = cast_weights(copied);
    ASSERT_EQ(with.size(), 1U) << recipe;
    ASSERT_EQ(without.size(), 1U) << recipe;
    EXPECT_EQ(with.begin()->first, kept.training.precision) << recipe;
    EXPECT_EQ(without.begin()->first, DType::bf16) << recipe;
    EXPECT_EQ(with.begin()->second.size(), without.begin()->second.size()) << recipe;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, ParamGatherLayers,
    testing::Values("training.optimizer=adam", "training.optimizer=muon",
                    "model.layer_types=[mamba,full_attention] model.mamba.heads=8 model.mamba.head_dim=64 model.mamba.state=6",
                    "model.layer_types=[linear_attention,full_attention] model.linear_attention.key_heads=4 "
                    "model.linear_attention.value_heads=8 model.linear_attention.key_dim=64 model.linear_attention.value_dim=64",
                    "model.moe.experts=4 model.moe.top_k=2 model.moe.ffn=32 model.moe.shared_experts=1 model.moe.latent=12",
                    "model.mla.kv_rank=16 model.mla.q_rank=12 model.mla.rope_dim=4 model.mla.nope_dim=6 model.mla.v_dim=5 "
                    "model.kv_heads=8"));

/// Four layers: qkv [64, 32], output [32, 32], up [96, 32] and down [32, 48].
constexpr std::int64_t linear = 4 * (64 * 32 + 32 * 32 + 96 * 32 + 32 * 48);

struct Memory {
  Bytes parameters = 0, copies = 0;
};

/// Of rank 0: what is kept of weights all along, and what casts of weights write beside.
Memory memory_of(const Scenario& scenario) {
  const Dag dag = lowered(scenario);
  Memory memory{.parameters = memory_use(dag, simulate(dag).timeline)[0].parameters};
  std::set<BufferId> copies;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.tasks[id].op != OpKind::cast || dag.tasks[id].rank != 0) continue;
    const auto kind = [&](const Operand& operand) { return dag.buffers[dag.buffers[operand.buffer].base].kind; };
    const auto is_weight = [&](const Operand& operand) {
      return kind(operand) == BufferKind::parameter || kind(operand) == BufferKind::communication;
    };
    if (std::ranges::none_of(dag.operands_of(id), is_weight)) continue;
    for (const Operand& operand : dag.operands_of(id))
      if (kind(operand) == BufferKind::activation && copies.insert(operand.buffer).second)
        memory.copies += dag.buffers[operand.buffer].bytes();
  }
  return memory;
}

// Two bytes of a weight become one, or half of one, and its scales, of all weights of a bucket together; the copy that is read by
// rows is the weight itself.
TEST(ParamGatherMemory, KeepsNoCopyInBf16) {
  const auto saved = [](const std::string& recipe) {
    const Memory with = memory_of(tiny_gathered(recipe, "parallelism.dp=2")),
                 without = memory_of(tiny_gathered(recipe, "parallelism.dp=2", false));
    return std::pair{without.parameters - with.parameters, without.copies - with.copies};
  };
  const std::int64_t tensors = 4 * 4;
  EXPECT_EQ(saved("current"), (std::pair{2 * linear - (linear + 4), linear + 4 * tensors}));
  EXPECT_EQ(saved("mxfp8"), (std::pair{2 * linear - (linear + linear / 32), linear + linear / 32}));
  EXPECT_EQ(saved("nvfp4"), (std::pair{2 * linear - (linear / 2 + linear / 16 + 4), linear / 2 + linear / 16 + 4 * tensors}));
}

/// Bytes of parameters that one rank takes part in gathering.
Bytes gathered_bytes(const Scenario& scenario) {
  const Dag dag = lowered(scenario);
  Bytes sum = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (task.rank == 0 && task.op == OpKind::all_gather && task.axis == Axis::dp) sum += dag.groups[task.group].bytes;
  }
  return sum;
}

// What travels is less by as much: by a byte, by one and a half; of mxfp8 by nothing.
TEST(ParamGatherBytes, SendTheNarrowWeights) {
  const auto saved = [](const std::string& recipe, const std::string& more = "") {
    const std::string mesh = "parallelism.dp=2 " + more;
    return gathered_bytes(tiny_gathered(recipe, mesh, false)) - gathered_bytes(tiny_gathered(recipe, mesh));
  };
  for (const char* recipe : {"delayed", "current", "blockwise"}) EXPECT_EQ(saved(recipe), linear) << recipe;
  EXPECT_EQ(saved("mxfp8"), 0);
  EXPECT_EQ(saved("nvfp4"), linear + linear / 2);
  EXPECT_EQ(saved("nvfp4", "training.first_last_layers_bf16=true"), (linear + linear / 2) / 2);
}

// Weights are read in a byte and written by columns in one, once in a step; and not by rows.
TEST(ParamGatherBytes, CastWeightsByColumnsAlone) {
  const auto cast_bytes = [](bool on) {
    const Dag dag = lowered(tiny_gathered("blockwise", "parallelism.dp=1 training.global_batch=1", on));
    Bytes sum = 0;
    for (TaskId id = 0; id < dag.tasks.size(); ++id)
      if (dag.tasks[id].op == OpKind::cast) sum += cost_of(dag, id).bytes;
    return sum;
  };
  const Bytes scales = 4 * 16;  // of a copy of all weights, each less than 128 x 128
  EXPECT_EQ(cast_bytes(false) - cast_bytes(true), (2 + 1 + 1) * linear + 2 * scales - (2 * linear + 2 * scales));
}

}  // namespace
}  // namespace tandem::studies::param_gather_test
