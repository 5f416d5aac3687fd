// Whole steps of several virtual ranks by the GPU's backend, with kernels and streams emulated, against the host backend's.

#include "runtime/cuda/module/gpu_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "runtime/contents/initial_values.h"
#include "runtime/cuda/emulation/cublas_lt.h"
#include "runtime/cuda/emulation/streams.h"
#include "runtime/cuda/module/cublas_lt.h"
#include "runtime/cuda/module/streams.h"
#include "runtime/cuda/module/verify_collective.h"
#include "runtime/execution/stored_types.h"
#include "runtime/executor.h"
#include "runtime/host/backend.h"
#include "runtime/host/memory.h"
#include "runtime/plan/arena.h"
#include "runtime/plan/graph_pieces.h"
#include "runtime/plan/issue_order.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "studies/step/verification.h"
#include "tests/cuda/step_support.h"
#include "tests/end_to_end/tiny.h"
#include "tests/runtime/all_collectives.h"

namespace tandem::studies::gpu_step_test {
namespace {

/// All that the step leaves behind: every buffer that lives for all of it, rank by rank.
std::vector<std::vector<float>> numbers_of(const Dag& dag, GpuStep& gpu) {
  std::vector<std::vector<float>> all;
  for (BufferId id = 0; id < dag.buffers.size(); ++id) {
    const Buffer& buffer = dag.buffers[id];
    if (buffer.base != id || !is_persistent(buffer.kind) || buffer.dtype == DType::i32) continue;
    std::vector<float>& numbers = all.emplace_back(static_cast<std::size_t>(buffer.shape.elements()));
    gpu.read(id, {numbers.data(), buffer.shape});
    for (float& x : numbers)
      if (std::isnan(x)) x = -1e30F;  // what nothing wrote
  }
  return all;
}

using ReadGradient = std::function<std::vector<float>(BufferId)>;

ReadGradient gradients_of(const Dag& dag, GpuStep& gpu) {
  return [&](BufferId id) {
    std::vector<float> numbers(static_cast<std::size_t>(dag.buffers[id].shape.elements()));
    gpu.read(id, {numbers.data(), dag.buffers[id].shape});
    return numbers;
  };
}
ReadGradient gradients_of(const HostMemory& host) {
  return [&](BufferId id) {
    const HostTensor tensor = host.tensor(id);
    return std::vector<float>(tensor.f32(), tensor.f32() + tensor.shape.elements());
  };
}

/// The cosine of the angle between the gradients of two steps, all elements of all ranks as one vector.
double cosine(const Dag& dag, const ReadGradient& one, const ReadGradient& other) {
  double product = 0, of_one = 0, of_other = 0;
  for (BufferId id = 0; id < dag.buffers.size(); ++id) {
    if (dag.buffers[id].base != id || dag.buffers[id].kind != BufferKind::gradient) continue;
    const std::vector<float> x = one(id), y = other(id);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i]) && std::isnan(y[i])) continue;  // nothing wrote it
      product += double{x[i]} * y[i];
      of_one += double{x[i]} * x[i];
      of_other += double{y[i]} * y[i];
    }
  }
  return product / std::sqrt(of_one * of_other);
}

class VirtualRanks : public testing::TestWithParam<TinyStep> {};

TEST_P(VirtualRanks, LeaveWhatTheHostLeaves) {
  const Dag dag = dag_of(GetParam());
  HostMemory host(dag, data_seed);
  execute(dag, *make_host_backend(host));
  const VerificationTolerance tolerance = verification_tolerance(GetParam().precision);
  for (const GraphScope graphs : {GraphScope::none, GraphScope::full}) {
    emulation::seed_streams(graphs == GraphScope::full ? 2 : 1);
    const auto gpu = make_gpu_step(dag, {.graphs = graphs}, 4);
    EXPECT_EQ(gpu->verify_collectives(), verify_collectives(dag));
    gpu->fill(data_seed);
    const Timeline timeline = execute(dag, *gpu);
    for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) {
      EXPECT_LT(difference(dag, *gpu, host, rank, BufferKind::gradient), tolerance.gradients);
      EXPECT_LT(difference(dag, *gpu, host, rank, BufferKind::parameter), tolerance.rest);
      expect_in_order(dag, timeline, rank);
    }
  }
}

/// A graph is captured once and launched again, with memory as the run before left it, as a step that is issued anew.
TEST(RepeatedRuns, OfAGraphAreThoseOfTasksIssuedOneByOne) {
  const Dag dag = dag_of({"parallelism.dp=2 parallelism.zero=1 model.layers=1 training.global_batch=2"});
  std::vector<std::vector<std::vector<float>>> left;
  for (const GraphScope graphs : {GraphScope::none, GraphScope::full}) {
    const auto gpu = make_gpu_step(dag, {.graphs = graphs}, 4);
    std::vector<std::vector<std::vector<float>>> after;
    for (const bool dates : {false, true}) {
      gpu->date_tasks(dates);
      gpu->fill(data_seed);
      for (int run = 0; run < 2; ++run) {
        const Timeline timeline = execute(dag, *gpu);
        EXPECT_EQ(dates, timeline.last_end() > 0);
        after.push_back(numbers_of(dag, *gpu));
      }
    }
    EXPECT_NE(after[0], after[1]);  // each trains on
    EXPECT_EQ(after[0], after[2]);
    EXPECT_EQ(after[1], after[3]);
    left.push_back(after.back());
  }
  EXPECT_EQ(left[0], left[1]);
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, VirtualRanks,
    testing::Values(TinyStep{"parallelism.dp=1"}, TinyStep{"parallelism.tp=2 parallelism.sp=true"},
                    TinyStep{"parallelism.dp=2 parallelism.zero=3"},
                    TinyStep{"parallelism.pp=2 parallelism.dp=2 parallelism.zero=1"},
                    TinyStep{"parallelism.cp=2 parallelism.dp=1"},
                    TinyStep{R"(model.moe={"experts":8,"top_k":2,"ffn":64} parallelism.dp=4 parallelism.ep=4)"},
                    TinyStep{R"(model.moe={"experts":8,"top_k":2,"ffn":64,"linear_bias":true} model.attention_bias=qkv )"
                             R"(model.logit_softcap=2 parallelism.dp=2 parallelism.ep=2)"},
                    TinyStep{R"(model.kv_heads=8 model.mla={"q_rank":12,"kv_rank":16,"rope_dim":4,"nope_dim":6,"v_dim":5} )"
                             R"(model.indexer={"heads":4,"head_dim":8,"top_k":5} parallelism.tp=2 parallelism.sp=true )"
                             R"(parallelism.cp=2 parallelism.cp_method=all-gather)"},
                    TinyStep{"training.documents.mean=5 training.documents.sigma=0.8 parallelism.cp=2 training.micro_batch=2"},
                    TinyStep{
                        "training.documents.mean=5 training.documents.sigma=0.8 training.attention=unfused parallelism.dp=2"},
                    TinyStep{R"(training.documents.mean=5 training.documents.sigma=0.8 parallelism.cp=2 parallelism.tp=2 )"
                             R"(parallelism.sp=true model.layer_types=[mamba,full_attention] )"
                             R"(model.mamba={"heads":8,"head_dim":64,"groups":4,"state":6,"chunk":4})"},
                    TinyStep{"parallelism.tp=2 parallelism.sp=true", DType::bf16},
                    TinyStep{"parallelism.dp=2 parallelism.zero=3", DType::f16},
                    TinyStep{"parallelism.dp=2 training.global_batch=2", DType::f8},
                    TinyStep{R"(model.moe={"experts":8,"top_k":2,"ffn":64} parallelism.dp=2 parallelism.ep=2)", DType::bf16}));

/// The largest difference of the gradients that a rank's Adam reads, over the largest element of each buffer.
double difference_of_gradients(const Dag& dag, GpuStep& gpu, const HostMemory& host) {
  double most = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.tasks[id].op != OpKind::adam) continue;
    const BufferId gradient = dag.buffers[dag.operands_of(id)[0].buffer].base;
    const Shape& shape = dag.buffers[gradient].shape;
    std::vector<float> found(static_cast<std::size_t>(shape.elements()));
    gpu.read(gradient, {found.data(), shape});
    const float* expected = host.tensor(gradient).f32();
    double largest = 0, apart = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      largest = std::max<double>(largest, std::abs(expected[i]));
      apart = std::max<double>(apart, std::abs(expected[i] - found[i]));
    }
    most = std::max(most, apart / largest);
  }
  return most;
}

/// A step whose recipe GPUs keep in wider types.
struct RecipeStep {
  const char* name;
  const char* overrides;
};
void PrintTo(const RecipeStep& step, std::ostream* out) { *out << step.name; }

class StepsByRecipes : public testing::TestWithParam<RecipeStep> {
 protected:
  static Dag lowered(bool rounds) {
    const Scenario scenario =
        tiny_cluster(words(std::string("cluster.preset=dgx-b200 training.global_batch=2 ") + GetParam().overrides));
    Dag dag = lower(scenario, make_world(scenario, false));
    if (!rounds)
      for (OpAttributes& attributes : dag.attributes)
        if (auto* cast = std::get_if<CastAttributes>(&attributes)) cast->to = NarrowType::none;
    return dag;
  }
};

INSTANTIATE_TEST_SUITE_P(
    Recipes, StepsByRecipes,
    testing::Values(
        RecipeStep{"mxfp8", "training.precision=fp8 training.recipe=mxfp8 parallelism.dp=1"},
        RecipeStep{"blockwise", "training.precision=fp8 training.recipe=blockwise parallelism.tp=2 parallelism.sp=true"},
        RecipeStep{
            "current_in_parts",
            "training.precision=fp8 training.recipe=current parallelism.tp=2 parallelism.sp=true training.overlap.tp=true"},
        RecipeStep{"nvfp4", "training.precision=fp4 parallelism.dp=2 parallelism.zero=3"},
        RecipeStep{"nvfp4_experts",
                   R"(training.precision=fp4 model.moe={"experts":8,"top_k":2,"ffn":64} parallelism.dp=2 parallelism.ep=2)"},
        RecipeStep{"mxfp8_gathered",
                   "training.precision=fp8 training.recipe=mxfp8 training.fp8_param_gather=true parallelism.dp=2 "
                   "parallelism.zero=1"},
        RecipeStep{"delayed_gathered",
                   "training.precision=fp8 training.fp8_param_gather=true parallelism.dp=2 parallelism.zero=1"},
        RecipeStep{"nvfp4_gathered", "training.precision=fp4 training.fp4_param_gather=true parallelism.dp=2 parallelism.zero=1"},
        RecipeStep{"attention", "training.precision=fp8 training.fp8_attention=true parallelism.dp=1"},
        RecipeStep{"attention_beside_nvfp4", "training.precision=fp4 training.fp8_attention=true parallelism.pp=2"}),
    [](const auto& test) { return std::string(test.param.name); });

// Without rounding to fp8 or fp4 what is left are the roundings of bf16: every operand is where it belongs. Where a tensor has
// one scale, GPUs multiply in fp8 all the same.
TEST_P(StepsByRecipes, LeaveWhatTheHostLeavesWithoutRounding) {
  const Dag on_host = lowered(false), dag = stored_on_gpus(on_host);
  HostMemory host(on_host, data_seed);
  execute(on_host, *make_host_backend(host));
  const auto gpu = make_gpu_step(dag, {.graphs = GraphScope::full}, 4);
  gpu->fill(data_seed);
  execute(dag, *gpu);
  const bool has_fp8 = std::ranges::any_of(dag.buffers, [](const Buffer& buffer) { return buffer.dtype == DType::f8; });
  const VerificationTolerance tolerance = verification_tolerance(has_fp8 ? DType::f8 : DType::bf16);
  for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) {
    EXPECT_LT(difference(dag, *gpu, host, rank, BufferKind::gradient), tolerance.gradients);
    EXPECT_LT(difference(dag, *gpu, host, rank, BufferKind::parameter), tolerance.rest);
  }
}

/// The same with every tensor of bf16 in fp32.
Dag in_fp32(Dag dag) {
  for (BufferId id = 0; id < dag.buffers.size(); ++id) {
    Buffer buffer = dag.buffers[id];
    if (buffer.dtype == DType::bf16) buffer.dtype = DType::f32;
    dag.buffers.set(id, buffer);
  }
  return dag;
}

// Computed in fp32, what is rounded differs from the host's in the order of sums alone. At random, another last bit draws anew: a
// GPU's gradients are then as near to the host's as those that the host draws with other seeds.
TEST_P(StepsByRecipes, RoundAsTheHostDoes) {
  const Dag on_host = lowered(true), dag = in_fp32(stored_on_gpus(on_host));
  HostMemory host(on_host, data_seed);
  execute(on_host, *make_host_backend(host));
  Dag redrawn = on_host;
  bool draws = false;
  for (OpAttributes& attributes : redrawn.attributes) {
    auto* const cast = std::get_if<CastAttributes>(&attributes);
    if (cast == nullptr || !cast->stochastic) continue;
    cast->seed += 1000;
    draws = true;
  }
  HostMemory other(redrawn, data_seed);
  if (draws) execute(redrawn, *make_host_backend(other));
  // Where a tensor has one scale, a GPU rounds gradients to e4m3, and a host to e5m2.
  const bool has_fp8 = std::ranges::any_of(dag.buffers, [](const Buffer& buffer) { return buffer.dtype == DType::f8; });
  const double near = draws ? cosine(dag, gradients_of(host), gradients_of(other)) - 0.02 : has_fp8 ? 0.95 : 0.9999;
  EXPECT_GT(near, 0.5);

  const auto gpu = make_gpu_step(dag, {}, 4);
  gpu->fill(data_seed);
  execute(dag, *gpu);
  EXPECT_GT(cosine(dag, gradients_of(dag, *gpu), gradients_of(host)), near);
}

// Which gradients are the largest, and which sign the smallest have, is a matter of rounding; what is left when the residuals are
// added to what was applied is not.
TEST(VirtualRanks, LoseNothingOfCompressedGradients) {
  for (const std::string method : {"top-k", "one-bit", "powersgd"}) {
    for (const DType precision : {DType::f32, DType::bf16}) {
      SCOPED_TRACE(method + " " + std::string(name_of(precision)));
      const Scenario scenario =
          tiny_cluster({"parallelism.dp=2", "parallelism.tp=2", "parallelism.zero=0", "training.global_batch=2",
                        "training.compressor.method=" + method, "training.precision=" + std::string(name_of(precision))});
      const Dag dag = lower(scenario, make_world(scenario, false), {.restores_residuals = true});
      HostMemory host(dag, data_seed);
      execute(dag, *make_host_backend(host));
      const auto gpu = make_gpu_step(dag, {}, 4);
      EXPECT_EQ(gpu->verify_collectives(), verify_collectives(dag));
      gpu->fill(data_seed);
      execute(dag, *gpu);
      EXPECT_LT(difference_of_gradients(dag, *gpu, host), verification_tolerance(precision).gradients);
    }
  }
}

/// The same step in a framework that says what it captures.
Dag captured_attention(Dag dag) {
  dag.software.name = "test";
  dag.software.captured = {OpKind::norm, OpKind::gemm, OpKind::split_heads, OpKind::attention};
  return dag;
}

// Graphs change when kernels are issued, not what they compute; what runs is the same in every run, captured once.
TEST(CudaGraphs, LeaveTheSameBits) {
  for (const TinyStep& step :
       {TinyStep{"model.layers=2 parallelism.dp=1 training.global_batch=2"},
        TinyStep{"model.layers=2 parallelism.tp=2 parallelism.sp=true training.global_batch=1", DType::bf16},
        TinyStep{"model.layers=2 parallelism.pp=2 training.global_batch=2"}}) {
    SCOPED_TRACE(step.overrides);
    const Dag dag = captured_attention(dag_of(step));
    std::vector<std::vector<float>> expected;
    for (const GraphScope graphs : {GraphScope::none, GraphScope::attention, GraphScope::layer, GraphScope::full}) {
      SCOPED_TRACE(name_of(graphs));
      const auto gpu = make_gpu_step(dag, {.graphs = graphs}, 4);
      for (const bool dates : {true, true, false}) {
        gpu->date_tasks(dates);
        gpu->fill(data_seed);
        const Timeline timeline = execute(dag, *gpu);
        EXPECT_GT(gpu->duration(), 0);
        if (dates)
          for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) expect_in_order(dag, timeline, rank);
        else
          EXPECT_EQ(timeline.makespan(), 0);
        if (expected.empty()) expected = numbers_of(dag, *gpu);
        EXPECT_EQ(numbers_of(dag, *gpu), expected);
      }
    }
  }
}

std::size_t kernels_in(const std::vector<GraphPiece>& pieces) {
  std::size_t kernels = 0;
  for (const GraphPiece& piece : pieces) kernels += piece.size();
  return kernels;
}

// One rank without pipeline or tensor parallelism waits for nobody: each layer's passes are captured whole.
TEST(CudaGraphs, AreOneForEachLayerMicroBatchAndPass) {
  const Dag dag = dag_of({"model.layers=3 parallelism.dp=1 training.micro_batch=1 training.global_batch=2"});
  const std::vector<TaskId> order = issue_order(dag);
  const ArenaPlan arena = plan_arena(dag, order, [](const Buffer& buffer) { return buffer.bytes(); });
  const WaitPlan waits(dag, order, arena.waits);
  const auto of = [&](GraphScope scope) { return graph_pieces(dag, order, waits, scope); };
  EXPECT_EQ(of(GraphScope::layer).size(), 3U * 2 * 2);
  std::size_t of_layers = 0;
  for (const Task& task : dag.tasks)
    of_layers += task.layer >= 0 && task.phase != Phase::optimizer && !is_communication(task.op) ? 1 : 0;
  EXPECT_EQ(kernels_in(of(GraphScope::layer)), of_layers);
  EXPECT_TRUE(of(GraphScope::none).empty());
  EXPECT_TRUE(of(GraphScope::full).empty());
  EXPECT_THROW(of(GraphScope::attention), std::runtime_error) << "the generic framework says nothing of what it captures";

  // Nodes: each task's kernels and two dates. A whole step captures what pieces leave out, too, and two dates of its own.
  const auto counted = [&](GraphScope scope, bool dates) {
    const auto gpu = make_gpu_step(dag, {.graphs = scope}, 4);
    gpu->date_tasks(dates);
    gpu->fill(data_seed);
    execute(dag, *gpu);
    return gpu->graphs();
  };
  const GraphCount dated = counted(GraphScope::layer, true), undated = counted(GraphScope::layer, false);
  EXPECT_EQ(dated.graphs, 3U * 2 * 2);
  EXPECT_EQ(dated.nodes - undated.nodes, 2 * of_layers);
  EXPECT_GE(undated.nodes, of_layers);
  EXPECT_EQ(counted(GraphScope::none, true), GraphCount{});
  EXPECT_EQ(counted(GraphScope::full, true).graphs, 1U);
  EXPECT_EQ(counted(GraphScope::full, true).nodes - counted(GraphScope::full, false).nodes, 2 * dag.tasks.size());
}

// Of a piece only the first task waits, and for the last alone others wait; no collective is inside.
TEST(CudaGraphs, HaveNoWaitsInside) {
  for (const char* overrides :
       {"parallelism.tp=2 parallelism.sp=true training.overlap.tp=true", "parallelism.dp=2 parallelism.zero=3",
        "parallelism.pp=2 training.schedule=zb-h1", "parallelism.cp=2 parallelism.dp=1"}) {
    SCOPED_TRACE(overrides);
    const Dag dag = captured_attention(dag_of({overrides}));
    const std::vector<TaskId> order = issue_order(dag);
    const ArenaPlan arena = plan_arena(dag, order, [](const Buffer& buffer) { return buffer.bytes(); });
    const WaitPlan waits(dag, order, arena.waits);
    const std::vector<GraphPiece> layers = graph_pieces(dag, order, waits, GraphScope::layer);
    const std::vector<GraphPiece> attention = graph_pieces(dag, order, waits, GraphScope::attention);
    EXPECT_FALSE(attention.empty());
    EXPECT_LT(kernels_in(attention), kernels_in(layers));
    for (const auto& pieces : {layers, attention}) {
      for (const GraphPiece& piece : pieces) {
        EXPECT_GE(piece.size(), 2U);
        for (const TaskId id : piece) {
          EXPECT_FALSE(is_communication(dag.tasks[id].op));
          EXPECT_TRUE(id == piece.front() || waits.of(id).empty());
          EXPECT_TRUE(id == piece.back() || !waits.is_awaited(id));
        }
      }
    }
  }
}

TEST(CudaGraphs, AreWhatTheSimulationTakesToBeCaptured) {
  Software software;
  EXPECT_EQ(simulated_scope(software), GraphScope::full) << "issuing costs nothing";
  software.issue.forward = 1e-6;
  EXPECT_EQ(simulated_scope(software), GraphScope::none);
  software.captured = {OpKind::attention};
  EXPECT_EQ(simulated_scope(software), GraphScope::attention);
}

// Where cuBLASLt has no algorithm, or none that runs, products in fp8 are computed in bf16.
TEST(VirtualRanks, MultiplyInBf16WhereCublasHasNoProductInFp8) {
  const Dag dag = dag_of({"parallelism.dp=1 training.global_batch=1", DType::f8});
  HostMemory host(dag, data_seed);
  execute(dag, *make_host_backend(host));
  std::vector<std::vector<std::vector<float>>> results;
  for (const auto products : {emulation::Fp8Products::run, emulation::Fp8Products::have_no_algorithm,
                              emulation::Fp8Products::fail_when_they_are_tried}) {
    CublasLt::of_this_device().forget();
    emulation::set_fp8_products(products);
    testing::internal::CaptureStderr();
    const auto gpu = make_gpu_step(dag, {}, 4);
    const std::string said = testing::internal::GetCapturedStderr();
    if (products == emulation::Fp8Products::have_no_algorithm) {
      EXPECT_NE(said.find("in fp8, which is multiplied in bf16"), std::string::npos);
    }
    gpu->fill(data_seed);
    execute(dag, *gpu);
    results.push_back(numbers_of(dag, *gpu));
    EXPECT_LT(difference(dag, *gpu, host, 0, BufferKind::gradient), verification_tolerance(DType::f8).gradients);
  }
  emulation::set_fp8_products(emulation::Fp8Products::run);
  CublasLt::of_this_device().forget();
  EXPECT_NE(results[0], results[1]) << "scales are applied to each operand, not to the product";
  EXPECT_EQ(results[1], results[2]);
}

// Reductions in bf16 and fp16 are tried in the step's own buffers: what was not reduced is found.
TEST(VirtualRanks, VerifyReductionsInTheirOwnType) {
  for (const DType type : {DType::bf16, DType::f16}) {
    const Dag dag = all_collectives(4, type);
    EXPECT_EQ(make_gpu_step(dag, {}, 4)->verify_collectives(), verify_collectives(dag));
    std::vector<std::vector<std::byte>> memory;
    for (const Buffer& buffer : dag.buffers) memory.emplace_back(static_cast<std::size_t>(dag.buffers[buffer.base].bytes()));
    const auto address = [&](BufferId id) -> void* {
      const Buffer& buffer = dag.buffers[id];
      return memory[buffer.base].data() + buffer.offset * size_of(buffer.dtype);
    };
    std::size_t reductions = 0;
    for (TaskId id = 0; id < dag.tasks.size(); ++id) {
      if (!dag.name_of_task(id).starts_with("sum")) continue;
      write_crafted_contents(dag, id, address, nullptr);
      EXPECT_THROW(expect_crafted_result(dag, id, address, nullptr), std::runtime_error);
      ++reductions;
    }
    EXPECT_GT(reductions, 0U);
  }
}

// A product that fills the GPU lets no block of a collective begin before it ends, unless those go first.
TEST(Queues, OfCommunicationGoFirst) {
  OwnedQueue usual(4, 0), first(4, 0, Urgency::first);
  EXPECT_LT(emulation::priority_of(first.get().stream), emulation::priority_of(usual.get().stream));
}

TEST(VirtualRanks, AreNoMoreThanSixteen) {
  const Dag dag = dag_of({"parallelism.dp=32 training.global_batch=32"});
  EXPECT_THROW(make_gpu_step(dag, {}, 4), std::runtime_error);
}

}  // namespace
}  // namespace tandem::studies::gpu_step_test
