// A measured run as a scenario: what its cells say, and what they leave to its framework.
#include "studies/validate/run_scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/input_error.h"
#include "tests/studies/runs_table.h"

namespace tandem::studies::run_scenario_test {
namespace {

using testing::HasSubstr;

DType gradients_of(const RunCells& changes) {
  const RunRow row = load_runs(RunsTable({tiny_run(changes)}).file()).rows.front();
  return scenario_of(row).scenario.training.grad_dtype;
}

TEST(RunScenario, HasGradientsAsTheRunSaysOrAsRecipesOfItsFrameworkHaveThem) {
  const RunCells core{{"framework", "megatron-core"}}, fp8{{"framework", "megatron-core"}, {"precision", "fp8"}};
  const auto with = [](RunCells cells, const std::string& gradients) {
    cells["grad_dtype"] = gradients;
    return cells;
  };
  EXPECT_EQ(gradients_of(core), DType::f32);
  EXPECT_EQ(gradients_of(with(core, "bf16")), DType::bf16);
  EXPECT_EQ(gradients_of(fp8), DType::bf16);
  EXPECT_EQ(gradients_of(with(fp8, "fp32")), DType::f32);
  EXPECT_EQ(gradients_of({{"framework", "torchtitan"}, {"precision", "fp8"}}), DType::f32);
  try {
    gradients_of(with(core, "fp9"));
    FAIL() << "fp9 is no type of gradients";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("grad_dtype"));
  }
}

Dispatcher dispatcher_of(const std::string& gpu, const std::string& framework, const std::string& cell) {
  const RunRow row = load_runs(RunsTable({tiny_run({{"gpu", gpu},
                                                    {"framework", framework},
                                                    {"dispatcher", cell},
                                                    {"experts", "8"},
                                                    {"top_k", "2"},
                                                    {"moe_ffn", "256"},
                                                    {"ep", "2"}})})
                                   .file())
                         .rows.front();
  return scenario_of(row).scenario.parallelism.dispatcher;
}

TEST(RunScenario, HasTheDispatcherOfItsCellOrOnARackThatOfItsFramework) {
  EXPECT_EQ(dispatcher_of("gb200", "megatron-core", ""), Dispatcher::hybridep);
  EXPECT_EQ(dispatcher_of("gb200", "megatron-core", "nccl"), Dispatcher::nccl);
  EXPECT_EQ(dispatcher_of("b200", "megatron-core", ""), Dispatcher::nccl);
  EXPECT_EQ(dispatcher_of("b200", "megatron-core", "hybridep"), Dispatcher::hybridep);
  EXPECT_EQ(dispatcher_of("gb200", "nemo", ""), Dispatcher::nccl);
}

}  // namespace
}  // namespace tandem::studies::run_scenario_test
