// Whole steps of several virtual ranks by the GPU's backend, with kernels and streams emulated, against the host backend's.

#include "runtime/cuda/module/gpu_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cli/verification.h"
#include "runtime/contents/initial_values.h"
#include "runtime/executor.h"
#include "runtime/host/backend.h"
#include "runtime/host/memory.h"
#include "runtime/host/verify_collectives.h"
#include "runtime/plan/arena.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/world.h"
#include "tests/cuda/emulation/streams.h"
#include "tests/end_to_end/tiny.h"

namespace tandem {
namespace {

struct Mesh {
  const char* overrides;
  DType precision = DType::f32;
};
void PrintTo(const Mesh& mesh, std::ostream* out) { *out << mesh.overrides << " " << name_of(mesh.precision); }

Dag dag_of(const std::string& overrides, DType precision = DType::f32) {
  const Scenario scenario = tiny_cluster(words(overrides + " training.precision=" + std::string(name_of(precision))));
  return lower(scenario, make_world(scenario, false));
}

/// The largest difference of the gradients or weights, over the largest element of each buffer.
double difference(const Dag& dag, GpuStep& gpu, const HostMemory& host, BufferKind kind) {
  double most = 0;
  for (BufferId id = 0; id < dag.buffers.size(); ++id) {
    const Buffer& buffer = dag.buffers[id];
    if (buffer.base != id || buffer.kind != kind) continue;
    const auto elements = static_cast<std::size_t>(buffer.shape.elements());
    std::vector<float> found(elements);
    gpu.read(id, {found.data(), buffer.shape});
    const float* expected = host.tensor(id).f32();
    double largest = 1e-30, apart = 0;
    for (std::size_t i = 0; i < elements; ++i) {
      if (std::isnan(expected[i]) && std::isnan(found[i])) continue;
      largest = std::max<double>(largest, std::abs(expected[i]));
      apart = std::max<double>(apart, std::abs(expected[i] - found[i]));
      if (std::isnan(expected[i]) != std::isnan(found[i])) apart = 1e30;
    }
    most = std::max(most, apart / largest);
  }
  return most;
}

class VirtualRanks : public testing::TestWithParam<Mesh> {};

TEST_P(VirtualRanks, LeaveWhatTheHostLeaves) {
  const Dag dag = dag_of(GetParam().overrides, GetParam().precision);
  HostMemory host(dag, data_seed);
  execute(dag, *make_host_backend(host));
  const VerificationTolerance tolerance = verification_tolerance(GetParam().precision);
  for (const bool graph : {false, true}) {
    emulation::seed_streams(graph ? 2 : 1);
    const auto gpu = make_gpu_step(dag, {.graph = graph}, 4);
    EXPECT_EQ(verify_collectives(dag, [&](const Collective& collective) { gpu->run_virtual(collective); }),
              verify_collectives(dag));
    gpu->fill(data_seed);
    const Timeline timeline = execute(dag, *gpu);
    EXPECT_LT(difference(dag, *gpu, host, BufferKind::gradient), tolerance.gradients);
    EXPECT_LT(difference(dag, *gpu, host, BufferKind::parameter), tolerance.rest);
    for (TaskId id = 0; id < dag.tasks.size(); ++id) ASSERT_LE(timeline.start[id], timeline.end[id]);
    for (auto [edge, last] = boost::edges(dag.graph); edge != last; ++edge)
      ASSERT_LE(timeline.end[boost::source(*edge, dag.graph)], timeline.start[boost::target(*edge, dag.graph)]);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, VirtualRanks,
    testing::Values(Mesh{"parallelism.dp=1"}, Mesh{"parallelism.tp=2 parallelism.sp=true"},
                    Mesh{"parallelism.dp=2 parallelism.zero=3"}, Mesh{"parallelism.pp=2 parallelism.dp=2 parallelism.zero=1"},
                    Mesh{"parallelism.cp=2 parallelism.dp=1"},
                    Mesh{R"(model.moe={"experts":8,"top_k":2,"ffn":64} parallelism.dp=4 parallelism.ep=4)"},
                    Mesh{"parallelism.tp=2 parallelism.sp=true", DType::bf16},
                    Mesh{"parallelism.dp=2 parallelism.zero=3", DType::f16},
                    Mesh{"parallelism.dp=2 training.global_batch=2", DType::f8},
                    Mesh{R"(model.moe={"experts":8,"top_k":2,"ffn":64} parallelism.dp=2 parallelism.ep=2)", DType::bf16}));

TEST(VirtualRanks, AreNoMoreThanSixteen) {
  const Dag dag = dag_of("parallelism.dp=32 training.global_batch=32");
  EXPECT_THROW(make_gpu_step(dag, {}, 4), std::runtime_error);
}

}  // namespace
}  // namespace tandem
