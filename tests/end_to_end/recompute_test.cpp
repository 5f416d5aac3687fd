// Recompute: the same step, less memory.

#include <gtest/gtest.h>

#include <map>

#include "runtime/analysis/memory.h"
#include "scenarios/lowering/lower.h"
#include "sim/simulate.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::recompute_test {
namespace {

class Recomputed : public testing::TestWithParam<const char*> {};

// fp32 sums in another order: see equivalence_test.cpp.
TEST_P(Recomputed, IsTheUnshardedStep) {
  const std::string mesh = "parallelism.tp=2 parallelism.sp=true parallelism.pp=2 parallelism.dp=2 ";
  EXPECT_LT(largest_difference(tiny_model(words(mesh + GetParam()))), 1e-5);
  EXPECT_LT(largest_difference(tiny_model(words(mesh + "training.schedule=zb-h1 " + GetParam()))), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Modules, Recomputed,
                         testing::Values("training.recompute=[norm]", "training.recompute=[activation]",
                                         "training.recompute=[mlp]", "training.recompute=[attention]",
                                         "training.recompute=[norm,activation,attention]",
                                         "training.recompute=[norm,activation,attention,mlp]", "training.recompute=selective-op",
                                         "training.recompute=full training.recompute_every=2"));

/// Of the first stage, at its fullest moment.
double peak_activations(const std::string& recompute) {
  const Scenario scenario = tiny_cluster(words("model.layers=8 model.hidden=256 model.ffn=1024 parallelism.pp=2 " + recompute));
  const Dag dag = lower(scenario, make_world(scenario, true));
  return static_cast<double>(memory_by_stage(dag, memory_use(dag, simulate(dag).timeline)).front().activations);
}

TEST(RecomputeMemory, FallsWithWhatIsComputedAgain) {
  const double none = peak_activations("");
  const double norm = peak_activations("training.recompute=[norm]");
  const double activation = peak_activations("training.recompute=[activation]");
  const double selective = peak_activations("training.recompute=selective");
  const double modules = peak_activations("training.recompute=[norm,activation,attention]");
  const double every_second = peak_activations("training.recompute=full training.recompute_every=2");
  const double selective_op = peak_activations("training.recompute=selective-op");
  const double full = peak_activations("training.recompute=full");
  EXPECT_LT(norm, none);
  EXPECT_LT(activation, none);
  EXPECT_LT(selective, none);
  EXPECT_LT(modules, std::min({norm, activation, selective}));
  // Every second layer's MLP keeps its inner width: between those of all layers and of none.
  EXPECT_LT(selective_op, peak_activations("training.recompute=[norm,activation]"));
  EXPECT_GT(selective_op, peak_activations("training.recompute=[norm,activation,mlp]"));
  EXPECT_LT(full, modules);
  EXPECT_LT(full, every_second);
  EXPECT_LT(every_second, none);
}

/// Bytes of the first stage's activations that live when its first backward begins.
std::int64_t kept_for_the_backward(const std::string& recompute) {
  const Scenario scenario = tiny_cluster(words("model.layers=8 parallelism.pp=2 " + recompute));
  const Dag dag = lower(scenario, make_world(scenario, true));
  const Timeline timeline = simulate(dag).timeline;
  Seconds backward = timeline.makespan();
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    const bool of_backward = task.phase == Phase::backward_input || task.phase == Phase::recompute;
    if (task.rank == 0 && of_backward && task.stream == Stream::compute) backward = std::min(backward, timeline.start[id]);
  }
  std::map<BufferId, std::pair<Seconds, Seconds>> lives;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    for (const Operand& operand : dag.operands_of(id)) {
      const Buffer& buffer = dag.buffers[operand.buffer];
      if (buffer.rank != 0 || buffer.kind != BufferKind::activation) continue;
      const auto [life, added] = lives.try_emplace(buffer.base, timeline.start[id], timeline.end[id]);
      life->second = {std::min(life->second.first, timeline.start[id]), std::max(life->second.second, timeline.end[id])};
    }
  }
  std::int64_t bytes = 0;
  for (const auto& [buffer, life] : lives) {
    if (life.first < backward && life.second > backward) bytes += dag.buffers[buffer].bytes();
  }
  return bytes;
}

// Two micro-batches of 16 tokens are in flight on the first of two stages, through 4 layers each; fp32.
TEST(RecomputeMemory, SavesExactlyTheOutputsNotKept) {
  const std::int64_t none = kept_for_the_backward("");
  const std::int64_t tokens = 2 * 4 * 16;
  EXPECT_EQ(none - kept_for_the_backward("training.recompute=[activation]"), tokens * 48 * 4);  // ffn wide
  EXPECT_EQ(none - kept_for_the_backward("training.recompute=[norm]"), tokens * 2 * 32 * 4);    // hidden wide, twice per layer
}

}  // namespace
}  // namespace tandem::studies::recompute_test
