// Training in fp4: linear GEMMs of the layers take operands of half a byte, with a scale for 16 of them; the first and last
// layers may stay in bf16.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "runtime/analysis/memory.h"
#include "scenarios/lowering/lower.h"
#include "sim/simulate.h"
#include "studies/step/simulated_step.h"
#include "studies/step/step_interval.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::fp4_test {
namespace {

const std::string in_fp4 = "cluster.preset=dgx-b200 training.precision=fp4 ";

Scenario tiny_fp4(const std::string& overrides) { return tiny_cluster(words(in_fp4 + overrides)); }

Dag lowered(const Scenario& scenario) { return lower(scenario, make_world(scenario, false)); }

class Fp4 : public testing::TestWithParam<const char*> {};

TEST_P(Fp4, ShardedStepIsTheUnshardedStep) { EXPECT_LT(largest_difference(tiny_fp4(GetParam())), 1e-5); }

INSTANTIATE_TEST_SUITE_P(
    Meshes, Fp4,
    testing::Values("parallelism.tp=2 parallelism.sp=true parallelism.pp=2 parallelism.dp=2",
                    "parallelism.tp=2 parallelism.sp=true training.overlap.tp=true training.first_last_layers_bf16=true",
                    "parallelism.dp=2 parallelism.zero=3 training.recompute=full training.first_last_layers_bf16=true",
                    "parallelism.pp=2 training.schedule=zb-h1 training.first_last_layers_bf16=true "
                    "training.num_layers_at_start_in_bf16=0",
                    "model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 parallelism.dp=2 parallelism.ep=2 "
                    "training.first_last_layers_bf16=true"));

/// The types that the GEMMs of each layer multiply in.
std::map<std::int16_t, std::set<DType>> types_by_layer(const Dag& dag) {
  std::map<std::int16_t, std::set<DType>> types;
  for (TaskId id = 0; id < dag.tasks.size(); ++id)
    if (dag.tasks[id].op == OpKind::gemm) types[dag.tasks[id].layer].insert(cost_of(dag, id).math);
  return types;
}

using Types = std::map<std::int16_t, std::set<DType>>;
const std::set<DType> fp4{DType::f4}, fp8{DType::f8}, bf16{DType::bf16};

TEST(Fp4Step, MultipliesInFp4InTheLayersAlone) {
  EXPECT_EQ(types_by_layer(lowered(tiny_fp4(""))), (Types{{-1, bf16}, {0, fp4}, {1, fp4}, {2, fp4}, {3, fp4}}));
}

TEST(Fp4Step, MultipliesInBf16InTheFirstAndLastLayers) {
  const std::string on = "training.first_last_layers_bf16=true ";
  EXPECT_EQ(types_by_layer(lowered(tiny_fp4(on))), (Types{{-1, bf16}, {0, bf16}, {1, fp4}, {2, fp4}, {3, bf16}}));
  EXPECT_EQ(types_by_layer(lowered(tiny_fp4(on + "parallelism.pp=4"))),
            (Types{{-1, bf16}, {0, bf16}, {1, fp4}, {2, fp4}, {3, bf16}}));
  EXPECT_EQ(types_by_layer(lowered(tiny_fp4(on + "training.num_layers_at_start_in_bf16=0 training.num_layers_at_end_in_bf16=2"))),
            (Types{{-1, bf16}, {0, fp4}, {1, fp4}, {2, bf16}, {3, bf16}}));
  EXPECT_EQ(types_by_layer(lowered(tiny_cluster(words(on + "training.precision=fp8 training.recipe=mxfp8")))),
            (Types{{-1, bf16}, {0, bf16}, {1, fp8}, {2, fp8}, {3, bf16}}));
}

// With all layers in bf16 the step is that of bf16, task by task.
TEST(Fp4Step, IsThatOfBf16WhereAllLayersAre) {
  const Dag all =
      lowered(tiny_fp4("training.first_last_layers_bf16=true training.num_layers_at_start_in_bf16=2 "
                       "training.num_layers_at_end_in_bf16=2"));
  const Dag plain = lowered(tiny_cluster(words("cluster.preset=dgx-b200 training.precision=bf16")));
  ASSERT_EQ(all.tasks.size(), plain.tasks.size());
  const Timeline in_all = simulate(all).timeline, in_plain = simulate(plain).timeline;
  EXPECT_EQ(in_all.start, in_plain.start);
  EXPECT_EQ(in_all.end, in_plain.end);
}

/// n numbers: half a byte each, a byte for 16, four for the tensor.
constexpr Bytes bytes_in_fp4(std::int64_t n) { return n / 2 + n / 16 + 4; }

// 16 tokens, width 32, MLP 48 wide and gated: up [96, 32]. Forward: x and W in, bf16 out; the gradient of the input reads
// W and dy; that of the weight adds to fp32.
TEST(Fp4Step, ReadsHalfABytePerNumberAndItsScales) {
  const Dag dag = lowered(tiny_fp4(""));
  std::map<Phase, Bytes> bytes;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (task.layer != 1 || task.micro_batch != 0 || dag.name_of_task(id) != "mlp up" || task.op != OpKind::gemm) continue;
    bytes[task.phase] = cost_of(dag, id).bytes;
  }
  const std::int64_t x = 16 * 32, w = 96 * 32, y = 16 * 96;
  EXPECT_EQ(bytes, (std::map<Phase, Bytes>{{Phase::forward, bytes_in_fp4(x) + bytes_in_fp4(w) + 2 * y},
                                           {Phase::backward_input, bytes_in_fp4(y) + bytes_in_fp4(w) + 2 * x},
                                           {Phase::backward_weight, bytes_in_fp4(y) + bytes_in_fp4(x) + 2 * 4 * w}}));
}

// As in fp8, but of other bytes: fullest after a forward pass, with both casts of all weights and the columns of the inputs.
TEST(Fp4Step, CastsTakeLessMemoryThanInFp8) {
  const auto activations = [](const Scenario& scenario) {
    const Dag dag = lowered(scenario);
    return memory_use(dag, simulate(dag).timeline)[0].activations;
  };
  const std::string experts = "model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=32 parallelism.dp=2 parallelism.ep=2";
  const Bytes in_bf16 = activations(tiny_cluster(words("cluster.preset=dgx-b200 training.precision=bf16 " + experts)));
  // per layer: qkv [64, 32], output [32, 32], four experts [64, 32] and [32, 32]; inputs of 16 tokens, and of 32 rows of experts
  Bytes casts = 0;
  for (const std::int64_t weight : {64 * 32, 32 * 32, 4 * 64 * 32, 4 * 32 * 32}) casts += 2 * bytes_in_fp4(weight);
  for (const std::int64_t input : {16 * 32, 16 * 32, 32 * 32, 32 * 32}) casts += bytes_in_fp4(input);
  const Bytes dropped = 2 * (16 * 32 + 32 * (32 + 32));  // inputs in bf16 that nothing else reads (fp8_test.cpp)
  EXPECT_EQ(activations(tiny_fp4(experts)), in_bf16 + 4 * (casts - dropped));
}

// Where no product was measured, an interval is as much wider as their share of the step times that error.
TEST(Fp4Step, WidensTheIntervalByWhatIsAssumed) {
  Scenario scenario = tiny_fp4("");
  const auto errors = [](const Scenario& s) {
    const StepResult result = simulate_step(s, true).result;
    Seconds products = 0;
    for (const KindTime& kind : result.kinds) products += kind.assumed;
    return std::pair{expected_errors(result)[static_cast<std::size_t>(ErrorPart::products)], products / result.step_time};
  };
  const auto [with, share] = errors(scenario);
  scenario.cluster.gpu.efficiency.gemm[static_cast<std::size_t>(DType::f4)].assumed = 0;
  const auto [without, none] = errors(scenario);
  EXPECT_EQ(none, 0);
  EXPECT_GT(share, 0);
  EXPECT_NEAR(with, std::hypot(without, share), 1e-12);
}

}  // namespace
}  // namespace tandem::studies::fp4_test
