// Llama 3 405B with four sequences to a micro-batch keeps four times the activations, about 274 GB on an 80 GB GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/json_result.h"
#include "tests/cli/run_command.h"
#include "tests/cli/study.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::cli::too_large_test {
namespace {

constexpr int does_not_fit = 3;
const std::vector<std::string> too_large = {"simulate", scenario_file("llama3-405b-16k"), "--set", "training.micro_batch=4",
                                            "--set",    "training.global_batch=8192"};

CommandResult run_too_large(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = too_large;
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_tandem(arguments);
}

TEST(TooLarge, SaysSoAndWritesNothing) {
  const TemporaryFolder folder;
  const CommandResult run = run_too_large({"--json", folder / "r.json", "--trace", folder / "t.pftrace"});
  EXPECT_EQ(run.exit_code, does_not_fit);
  EXPECT_EQ(run.out, "");
  EXPECT_TRUE(folder.empty());
  EXPECT_THAT(run.err, testing::HasSubstr("Memory by pipeline stage"));
  const std::string last_line = run.err.substr(run.err.rfind('\n', run.err.size() - 2) + 1);
  EXPECT_THAT(last_line, testing::MatchesRegex("tandem: .*llama3-405b-16k.yaml: stage [0-9]+ needs .* --allow-oom\n"));
}

TEST(TooLarge, KeepsStandardOutputEmptyForTheJsonToo) {
  const CommandResult run =
      run_tandem({"simulate", scenario_file("llama3-8b-64"), "--set", "training.micro_batch=4", "--json", "-"});
  EXPECT_EQ(run.exit_code, does_not_fit);
  EXPECT_EQ(run.out, "");
}

TEST(TooLarge, GoesOnWhenAllowed) {
  const CommandResult run = run_too_large({"--json", "-", "--allow-oom"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const nlohmann::json result = checked_result(run.out);
  expect_within_bounds(result);
  EXPECT_EQ(result["memory"]["fits"], false);
  EXPECT_GT(result["memory"]["peak_bytes"], result["memory"]["gpu_bytes"]);
}

constexpr int wrong_input = 2;

/// What would take more than this machine has, or may, says so before it is lowered.
void expect_refused(const CommandResult& run, const std::string& sentence) {
  EXPECT_EQ(run.exit_code, wrong_input) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, testing::MatchesRegex(sentence));
}

// 524,288 micro-batches of 32 layers, of which each takes tens of tasks: more ids than 32 bits have of buffers.
TEST(TooLargeForThisMachine, SaysHowLargeItWouldBe) {
  expect_refused(
      run_tandem({"simulate", scenario_file("llama3-8b-64"), "--set", "training.global_batch=16777216"}),
      "tandem: llama3-8b-64: would be a graph of about [0-9,]+ tasks .1 ranks or classes of ranks, 524,288 "
      "micro-batches., which takes about [0-9.]+ GB of memory and, as fast as this machine lowered a part of it, about "
      "[0-9a-z .]+; expected at most .*training.global_batch.*\n");
}

TEST(TooLargeForThisMachine, IsWhatMaxMemorySays) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"simulate"}, std::vector<std::string>{"simulate", "--no-fold"},
        std::vector<std::string>{"execute", "--backend", "host"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.begin() + 1, {scenario_file("tiny-host"), "--max-memory", "44MB"});
    expect_refused(run_tandem(arguments),
                   "tandem: tiny-host: would be a graph of about [0-9,]+ tasks .*expected at most 0.04 "
                   "GB.*a larger --max-memory.*\n");
  }
  EXPECT_EQ(run_tandem({"simulate", scenario_file("tiny-host"), "--max-memory", "2GB", "--json", "-"}).exit_code, 0);
}

TEST(TooLargeForThisMachine, SizesAreReadAsTheyAreWritten) {
  const CommandResult nothing = run_tandem({"simulate", scenario_file("tiny-host"), "--max-memory", "0"});
  EXPECT_EQ(nothing.exit_code, wrong_input);
  EXPECT_THAT(nothing.err, testing::HasSubstr("expected a size such as 8GB"));
  EXPECT_EQ(run_tandem({"simulate", scenario_file("tiny-host"), "--max-memory", "much"}).exit_code, wrong_input);
}

/// Simulations that run at once share what the command may take, and one that may not is a row like any other.
TEST(TooLargeForThisMachine, IsARowOfASweep) {
  const StudyFolder folder(tiny_study("grid: {training.micro_batch: [1, 2]}\n"));
  const CommandResult refused = folder.sweep({"--jobs", "2", "--max-memory", "84MB"});
  EXPECT_EQ(refused.exit_code, 1) << refused.err;
  for (const std::string& message : column_of(folder.database(), "message"))
    EXPECT_THAT(message, testing::HasSubstr("--max-memory"));
  const CommandResult done = folder.sweep({"--jobs", "2", "--max-memory", "4GB"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
}

/// 1,048,576 GPUs are 16 classes.
TEST(AMillionGpus, AreSimulatedFolded) {
  const std::vector<std::string> million{
      "simulate", scenario_file("llama3-405b-16k"), "--set", "cluster.gpus=1048576", "--set", "parallelism.dp=8192",
      "--set",    "training.global_batch=131072"};
  std::vector<std::string> folded = million, whole = million;
  folded.insert(folded.end(), {"--json", "-"});
  const CommandResult run = run_tandem(folded);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(checked_result(run.out)["run"]["ranks"], 1048576);
  whole.emplace_back("--no-fold");
  expect_refused(run_tandem(whole), "tandem: --no-fold: every one of 1048576 ranks would be lowered; expected at most 4096\n");
}

}  // namespace
}  // namespace tandem::cli::too_large_test
