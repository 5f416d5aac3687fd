// Memory as PyTorch and the driver count it: of whole steps.

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "runtime/analysis/memory_over_time.h"
#include "studies/step/simulated_step.h"
#include "tests/end_to_end/random_clusters.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::device_memory_test {
namespace {

constexpr Bytes mebi = Bytes{1024} * 1024;

/// Each figure holds those before it.
void expect_nested(const StepResult& result, const std::string& what) {
  ASSERT_TRUE(result.device_memory) << what;
  const DeviceMemory& memory = *result.device_memory;
  EXPECT_GE(memory.allocated, result.peak_memory()) << what;
  EXPECT_GE(memory.reserved, memory.allocated) << what;
  EXPECT_EQ(memory.reserved % (2 * mebi), 0) << what;
  EXPECT_EQ(memory.device(), memory.reserved + memory.communicators + memory.context) << what;
}

const std::vector<std::string> meshes{"parallelism.tp=2 parallelism.pp=2 parallelism.dp=4",
                                      "parallelism.tp=2 parallelism.sp=true parallelism.dp=8 parallelism.zero=1",
                                      "parallelism.cp=2 parallelism.dp=8 parallelism.zero=2",
                                      "parallelism.pp=4 parallelism.dp=4 parallelism.zero=1",
                                      "parallelism.dp=16 parallelism.zero=3"};

Scenario scenario_on(const std::string& mesh, const std::string& framework) {
  return tiny_cluster(words(mesh + " training.global_batch=32 model.hidden=256 model.layers=8 training.framework=" + framework));
}

TEST(DeviceMemory, HoldsTensorsAndIsThatOfTheUnfoldedStep) {
  for (const std::string& mesh : meshes) {
    for (const char* framework : {"generic", "megatron-core", "torchtitan"}) {
      const std::string what = mesh + ", " + framework;
      const Scenario scenario = scenario_on(mesh, framework);
      const StepResult folded = simulate_step(scenario, true).result;
      expect_nested(folded, what);
      EXPECT_EQ(folded.device_memory, simulate_step(scenario, false).result.device_memory) << what;
    }
  }
}

TEST(DeviceMemory, OfRandomClustersIsThatOfTheUnfoldedStep) {
  for (const RandomCluster& drawn : random_clusters(12, 1, 1)) {
    const StepResult folded = simulate_step(drawn.scenario, true).result;
    expect_nested(folded, drawn.text());
    const StepResult whole = simulate_step(drawn.scenario, false).result;
    EXPECT_EQ(folded.device_memory->allocated, whole.device_memory->allocated) << drawn.text();
    EXPECT_EQ(folded.device_memory->communicators, whole.device_memory->communicators) << drawn.text();
  }
}

void expect_same(const MemoryOverTime& a, const MemoryOverTime& b, const std::string& what) {
  EXPECT_EQ(a.use.rank, b.use.rank) << what;
  EXPECT_EQ(a.use.peak(), b.use.peak()) << what;
  EXPECT_EQ(a.peak_task, b.peak_task) << what;
  const auto values = [](const MemoryPoint& point) { return std::tuple{point.at, point.activations, point.buffers}; };
  EXPECT_TRUE(std::ranges::equal(a.points, b.points, {}, values, values)) << what;
  const auto held = [](const MemoryHolder& holder) { return std::tie(holder.name, holder.bytes); };
  EXPECT_TRUE(std::ranges::equal(a.largest, b.largest, {}, held, held)) << what;
}

// Ranks of one stage, equally full or not, are told of by several threads, in any order.
TEST(MemoryOverTime, OfStagesIsThatOfTheirFullestRanks) {
  std::size_t shared_stages = 0;
  for (const RandomCluster& drawn : random_clusters(12, 1, 1)) {
    for (const bool folded : {true, false}) {
      const SimulatedStep step = simulate_step(drawn.scenario, folded, {.memory_over_time = true});
      std::vector<RankIndex> ranks;
      for (const MemoryUse& use : step.result.stages)
        if (use.rank != no_id) ranks.push_back(use.rank);
      if (step.dag.ranks.size() > ranks.size()) ++shared_stages;
      const std::vector<MemoryOverTime> alone = memory_over_time(step.dag, step.timeline, ranks);
      ASSERT_EQ(step.memory.size(), alone.size()) << drawn.text();
      for (std::size_t i = 0; i < alone.size(); ++i) expect_same(step.memory[i], alone[i], drawn.text());
    }
  }
  EXPECT_GT(shared_stages, 10);
}

}  // namespace
}  // namespace tandem::studies::device_memory_test
