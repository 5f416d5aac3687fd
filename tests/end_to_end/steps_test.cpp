// A whole training step with collectives played message by message, against one flow each.

#include <gtest/gtest.h>

#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "sim/collective_cost.h"
#include "sim/simulate.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::steps_test {
namespace {

struct Mesh {
  const char* overrides;
  bool experts = false;
};
void PrintTo(const Mesh& mesh, std::ostream* out) { *out << mesh.overrides; }

class StepByStep : public testing::TestWithParam<Mesh> {};

/// A model whose messages are some megabytes, on nodes of four.
Scenario scenario_of(const std::string& mesh, bool experts = false) {
  std::vector<std::string> overrides = words(
      "model.hidden=1024 model.head_dim=128 model.ffn=4096 model.kv_heads=8 model.layers=4 model.vocab=1024 "
      "training.sequence=2048 "
      "training.precision=bf16 training.global_batch=16 cluster.gpus_per_node=4 cluster.nics_per_node=4");
  for (std::string& more : words(mesh)) overrides.push_back(std::move(more));
  if (experts) overrides.emplace_back("model.moe={experts: 16, top_k: 2, ffn: 512}");
  return tiny_cluster(overrides);
}

TEST_P(StepByStep, TakesAboutTheTimeOfFlows) {
  const Scenario scenario = scenario_of(GetParam().overrides, GetParam().experts);
  const Dag dag = lower(scenario, make_world(scenario, false, {.detail = Detail::hops}));
  const Dag without_hops = lower(scenario, make_world(scenario, false));
  const Seconds fluid = simulate(without_hops).timeline.makespan();
  EXPECT_NEAR(simulate(dag, Collectives::fluid).timeline.makespan(), fluid, 1e-9 * fluid);
  const Seconds steps = simulate(dag, Collectives::steps).timeline.makespan();
  EXPECT_NEAR(steps, fluid, 0.03 * fluid);
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, StepByStep,
    testing::Values(Mesh{"parallelism.dp=8"}, Mesh{"parallelism.tp=4 parallelism.sp=true parallelism.dp=2"},
                    Mesh{"parallelism.tp=4 parallelism.sp=true parallelism.pp=2 parallelism.dp=2 parallelism.zero=1"},
                    Mesh{"parallelism.tp=2 parallelism.pp=2 parallelism.dp=8 parallelism.zero=2 training.bucket_MB=4"},
                    Mesh{"parallelism.cp=4 parallelism.dp=4 parallelism.zero=3"},
                    Mesh{"parallelism.tp=4 parallelism.pp=4 parallelism.dp=4 cluster.fabric.oversubscription=[1,2,2]"},
                    Mesh{"parallelism.dp=8 parallelism.ep=8", true},
                    Mesh{"parallelism.dp=8 parallelism.ep=8 training.gates_at_experts=true", true},
                    Mesh{"parallelism.dp=8 parallelism.ep=8 parallelism.dispatcher=deepep training.gates_at_experts=true",
                         true}));

TEST(StepByStep, NeedsEveryRank) {
  EXPECT_THROW(make_world(scenario_of("parallelism.dp=8"), true, {.detail = Detail::hops}), std::logic_error);
}

}  // namespace
}  // namespace tandem::studies::steps_test
