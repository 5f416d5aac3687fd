#include "tests/cuda/step_support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "tests/end_to_end/tiny.h"
#include "tests/runtime/edges.h"

namespace tandem::studies {

void PrintTo(const TinyStep& step, std::ostream* out) { *out << step.overrides << " " << name_of(step.precision); }

Dag dag_of(const TinyStep& step) {
  const std::string precision(name_of(step.precision));
  const Scenario scenario = tiny_cluster(words(std::string(step.overrides) + " training.precision=" + precision));
  return lower(scenario, make_world(scenario, false));
}

double difference(const Dag& dag, GpuStep& gpu, const HostMemory& host, RankIndex rank, BufferKind kind) {
  double most = 0;
  for (BufferId id = 0; id < dag.buffers.size(); ++id) {
    const Buffer& buffer = dag.buffers[id];
    if (buffer.base != id || buffer.rank != rank || buffer.kind != kind) continue;
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

void expect_in_order(const Dag& dag, const Timeline& timeline, RankIndex rank) {
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.tasks[id].rank == rank) {
      ASSERT_LE(timeline.start[id], timeline.end[id]);
    }
  }
  for (const auto& [before, after] : edges_of(dag)) {
    if (dag.tasks[before].rank == rank && dag.tasks[after].rank == rank) {
      ASSERT_LE(timeline.end[before], timeline.start[after]);
    }
  }
}

}  // namespace tandem::studies
