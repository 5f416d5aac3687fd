// Whole steps of several virtual ranks by the GPU's backend, with kernels and streams emulated, against the host backend's.

#include "runtime/cuda/module/gpu_step.h"

#include <gtest/gtest.h>

#include "runtime/contents/initial_values.h"
#include "runtime/cuda/emulation/streams.h"
#include "runtime/executor.h"
#include "runtime/host/backend.h"
#include "runtime/host/memory.h"
#include "studies/step/verification.h"
#include "tests/cuda/step_support.h"

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

TEST(VirtualRanks, AreNoMoreThanSixteen) {
  const Dag dag = dag_of({"parallelism.dp=32 training.global_batch=32"});
  EXPECT_THROW(make_gpu_step(dag, {}, 4), std::runtime_error);
}

}  // namespace
}  // namespace tandem::studies::gpu_step_test
