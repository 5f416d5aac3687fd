// What a step becomes when it is lowered, known before.
#include "scenarios/lowering/step_size.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "scenarios/reading/load.h"

namespace tandem::scenarios::step_size_test {
namespace {

const std::string folder = TANDEM_SOURCE_DIR "/scenarios/";

/// The larger of estimate / size and size / estimate, of tasks and of buffers.
double factor_off(const Scenario& scenario, bool folded = true) {
  const World world = make_world(scenario, folded);
  const StepSize estimate = size_of_step(scenario, world).step;
  const Dag dag = lower(scenario, world);
  const StepSize most = most_of_step(scenario, world);
  EXPECT_GE(most.tasks, static_cast<double>(dag.tasks.size())) << scenario.name;
  EXPECT_GE(most.buffers, static_cast<double>(dag.buffers.size())) << scenario.name;
  const double tasks = estimate.tasks / static_cast<double>(dag.tasks.size());
  const double buffers = estimate.buffers / static_cast<double>(dag.buffers.size());
  return std::max({tasks, 1 / tasks, buffers, 1 / buffers});
}

/// Every further micro-batch adds as much as the second, whatever the schedule makes of their order.
TEST(StepSize, IsExactForEverySchedule) {
  for (const char* pipeline :
       {"{dp: 4}", "{pp: 4, dp: 2}, training.schedule=gpipe", "{pp: 4, dp: 2}, training.schedule=1f1b",
        "{pp: 4, dp: 2}, training.schedule=zb-h1", "{pp: 2, vpp: 2, dp: 2}, training.schedule=zb-v",
        "{pp: 4, vpp: 2, dp: 2}, training.schedule=interleaved-1f1b", "{pp: 4, dp: 2}, training.schedule=dualpipe",
        "{tp: 2, sp: true, dp: 4, zero: 2}", "{dp: 4, zero: 2}, training.recompute=full"}) {
    std::vector<std::string> overrides;
    const std::string text = pipeline;
    const std::size_t end = text.find('}') + 1;
    overrides.push_back("parallelism=" + text.substr(0, end));
    if (end < text.size()) overrides.push_back(text.substr(end + 2));
    const Scenario scenario = parse_scenario(
        "name: tiny\ncluster: {preset: dgx-h100}\n"
        "model: {layers: 8, hidden: 32, heads: 8, head_dim: 4, ffn: 48, vocab: 96}\n"
        "training: {sequence: 16, micro_batch: 1, global_batch: 64, precision: bf16}\n",
        "tiny.yaml", overrides);
    EXPECT_EQ(factor_off(scenario), 1) << pipeline;
    EXPECT_EQ(factor_off(scenario, false), 1) << pipeline;
  }
}

TEST(StepSize, GrowsWithMicroBatchesBeyondAnyGraph) {
  const auto tasks = [](const char* sequences) {
    const Scenario scenario = load_scenario(folder + "llama3-8b-64.yaml", {std::string("training.global_batch=") + sequences});
    return size_of_step(scenario, make_world(scenario, true)).step.tasks;
  };
  // 32 replicas: one micro-batch, three, 2^19. The step is affine in them.
  const double one = tasks("32"), three = tasks("96");
  EXPECT_DOUBLE_EQ(tasks("16777216"), one + (three - one) / 2 * ((1 << 19) - 1));
}

constexpr double allowed = 1.3;

TEST(StepSize, OfSomeScenariosIsNear) {
  for (const char* name :
       {"tiny-host", "llama3-8b-64", "llama3-8b-64-packed", "llama3-405b-16k", "mixtral-8x7b-64", "moe-1t-16k"})
    EXPECT_LE(factor_off(load_scenario(folder + name + ".yaml", {})), allowed) << name;
}

/// A few seconds for each of the largest.
TEST(SlowStepSize, OfEveryScenarioIsNear) {
  std::size_t compared = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".yaml") continue;
    EXPECT_LE(factor_off(load_scenario(file.path(), {})), allowed) << file.path();
    ++compared;
  }
  EXPECT_GE(compared, 40U);
}

}  // namespace
}  // namespace tandem::scenarios::step_size_test
