// Whole steps of several virtual ranks by the GPU's backend, with kernels and streams emulated, against the host backend's.

#include "runtime/cuda/module/gpu_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "runtime/contents/initial_values.h"
#include "runtime/cuda/emulation/streams.h"
#include "runtime/executor.h"
#include "runtime/host/backend.h"
#include "runtime/host/memory.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "studies/step/verification.h"
#include "tests/cuda/step_support.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::gpu_step_test {
namespace {

class VirtualRanks : public testing::TestWithParam<TinyStep> {};

TEST_P(VirtualRanks, LeaveWhatTheHostLeaves) {
  const Dag dag = dag_of(GetParam());
  HostMemory host(dag, data_seed);
  execute(dag, *make_host_backend(host));
  const VerificationTolerance tolerance = verification_tolerance(GetParam().precision);
  for (const bool graph : {false, true}) {
    emulation::seed_streams(graph ? 2 : 1);
    const auto gpu = make_gpu_step(dag, {.graph = graph}, 4);
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

INSTANTIATE_TEST_SUITE_P(
    Meshes, VirtualRanks,
    testing::Values(TinyStep{"parallelism.dp=1"}, TinyStep{"parallelism.tp=2 parallelism.sp=true"},
                    TinyStep{"parallelism.dp=2 parallelism.zero=3"},
                    TinyStep{"parallelism.pp=2 parallelism.dp=2 parallelism.zero=1"},
                    TinyStep{"parallelism.cp=2 parallelism.dp=1"},
                    TinyStep{R"(model.moe={"experts":8,"top_k":2,"ffn":64} parallelism.dp=4 parallelism.ep=4)"},
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

TEST(VirtualRanks, AreNoMoreThanSixteen) {
  const Dag dag = dag_of({"parallelism.dp=32 training.global_batch=32"});
  EXPECT_THROW(make_gpu_step(dag, {}, 4), std::runtime_error);
}

}  // namespace
}  // namespace tandem::studies::gpu_step_test
