// What Slurm's tasks simulate is what this machine simulates, whatever becomes of the tasks. Slurm's programs are fake here;
// tests/slurm has real ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "studies/slurm/slurm_programs.h"
#include "studies/slurm/spool.h"
#include "tests/cli/fake_slurm.h"
#include "tests/cli/json_result.h"
#include "tests/cli/study.h"

namespace tandem::cli::slurm_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int done = 0, failed = 1, wrong = 2;
const std::string study = tiny_study("grid: {parallelism.dp: [1, 2, 4, 8], training.micro_batch: [1, 2]}\n");

/// The rows without what differs from run to run.
std::map<std::string, Row> results_in(const std::string& database) {
  std::map<std::string, Row> rows = rows_of(database);
  for (auto& [hash, row] : rows) {
    std::erase_if(row, [](const auto& cell) {
      return cell.first == "started" || cell.first == "seconds" || cell.first == "digest" || cell.first.starts_with("run.");
    });
    if (row.contains("json")) row["json"] = without_run_costs(row["json"]);
  }
  return rows;
}

/// Sweeps a study into two databases, of which only the second is Slurm's.
void expect_same_with_slurm(const std::string& text, const std::vector<std::string>& options) {
  const StudyFolder folder(text);
  const std::string plain = folder / "plain.sqlite";
  const CommandResult here = run_tandem({"sweep", folder.study(), "--out", plain});
  std::vector<std::string> with = {"--slurm=2"};
  with.insert(with.end(), options.begin(), options.end());
  const CommandResult there = folder.sweep(with);
  EXPECT_EQ(there.exit_code, here.exit_code) << there.err;
  EXPECT_EQ(there.out.substr(0, there.out.rfind("; in ")), here.out.substr(0, here.out.rfind("; in ")));
  EXPECT_TRUE(results_in(folder.database()) == results_in(plain)) << there.err;
  EXPECT_FALSE(std::filesystem::exists(folder.database() + ".slurm"));
}

TEST(Slurm, PointsAreThoseOfThisMachine) {
  const FakeSlurm slurm;
  expect_same_with_slurm(study, {});
  EXPECT_EQ(slurm.arrays(), 1);
}

// With warnings, whose places are in the stored text, with points that are refused, and with points that do not fit.
TEST(Slurm, PointsThatAreNoResultsAreThoseOfThisMachine) {
  const FakeSlurm slurm;
  expect_same_with_slurm(tiny_study("skip_invalid: true\ngrid: {parallelism.tp: [3, 4], cluster.gpu.memory_GiB: [0.001, 80]}\n"),
                         {});
  expect_same_with_slurm(
      tiny_study("set: {model.heads: 16, model.kv_heads: 16, parallelism.tp: 16}\ngrid: {parallelism.dp: [1, 2]}\n"),
      {"--jobs", "2"});
}

TEST(Slurm, SbatchIsToldWhatTheUserWants) {
  const FakeSlurm slurm;
  const StudyFolder folder(study);
  const CommandResult run =
      folder.sweep({"--slurm=3", "--jobs", "2", "--sbatch=--partition=cpu --comment='a b'", "--sbatch=--time=1:00:00"});
  ASSERT_EQ(run.exit_code, done) << run.err;
  EXPECT_THAT(run.err, HasSubstr("tandem: Slurm job 1 has 3 tasks; their logs are in "));
  std::vector<std::string> words;
  std::ifstream file(slurm / "arguments");
  for (std::string line; std::getline(file, line);) words.push_back(line);
  EXPECT_THAT(words, ElementsAre("--job-name=tandem-study", HasSubstr(".slurm/logs/%A_%a.log"), "--nodes=1", "--ntasks=1",
                                 "--cpus-per-task=2", "--partition=cpu", "--comment=a b", "--time=1:00:00", "--no-requeue",
                                 "--parsable", "--array=0-2", HasSubstr("/task.sh")));
}

TEST(Slurm, NoMoreTasksThanPointsAreSubmittedAndNoneForKnownOnes) {
  const FakeSlurm slurm;
  const StudyFolder folder(tiny_study("grid: {parallelism.dp: [1, 2]}\n"));
  ASSERT_EQ(folder.sweep({"--slurm=5"}).exit_code, done);
  EXPECT_THAT(read_all(slurm / "arguments"), HasSubstr("--array=0-1\n"));
  const CommandResult again = folder.sweep({"--slurm"});
  EXPECT_EQ(again.exit_code, done);
  EXPECT_EQ(again.err, "");
  EXPECT_EQ(slurm.arrays(), 1);
}

// A task that takes what there is and dies. The third array works.
TEST(Slurm, WhatDeadTasksLeaveIsDoneByOthers) {
  const FakeSlurm slurm;
  slurm.write("task.sh",
              "cd $(dirname $1)/todo\n"
              "[[ $SLURM_ARRAY_JOB_ID -lt 3 ]] || exec bash $1\n"
              "for step in *; do mv $step ../taken/$step.${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID 2>/dev/null; done\n"
              "kill -KILL $$\n");
  expect_same_with_slurm(study, {});
  EXPECT_EQ(slurm.arrays(), 3);
}

TEST(Slurm, AStepThatEndsThreeTasksHasFailed) {
  const FakeSlurm slurm;
  slurm.write("task.sh",
              "cd $(dirname $1)/todo\n"
              "for step in *; do mv $step ../taken/$step.${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID; done\n"
              "kill -KILL $$\n");
  const StudyFolder folder(tiny_study("grid: {parallelism.dp: [2]}\n"));
  const CommandResult run = folder.sweep({"--slurm=1"});
  EXPECT_EQ(run.exit_code, failed);
  EXPECT_THAT(run.err, HasSubstr("1 of 1 points failed; the same command tries them again"));
  EXPECT_THAT(column_of(folder.database(), "message").front(),
              testing::MatchesRegex(
                  "the Slurm task 3_0 ended \\(FAILED\\) while it simulated this, as 2 tasks before it did; its log is .*"));
  std::filesystem::remove(slurm / "task.sh");
  EXPECT_EQ(folder.sweep({"--slurm=1"}).exit_code, done);
  EXPECT_THAT(column_of(folder.database(), "status"), ElementsAre("done"));
}

TEST(Slurm, AnArrayThatBringsNothingEndsTheCommandWithItsLastWords) {
  const FakeSlurm slurm;
  slurm.write("task.sh", "echo 'tandem: not found'\nexit 127\n");
  const StudyFolder folder(study);
  const CommandResult run = folder.sweep({"--slurm=1"});
  EXPECT_EQ(run.exit_code, failed);
  EXPECT_THAT(run.err,
              HasSubstr("Slurm job 1 ended (FAILED) before it brought a result; a task's last words are: tandem: not found; "
                        "the same command tries again\n"));
  EXPECT_EQ(slurm.arrays(), 1);
}

TEST(Slurm, AControllerThatDoesNotAnswerIsWaitedFor) {
  const FakeSlurm slurm;
  slurm.write("silent", "1\n2\n");
  slurm.write("task.sh", "sleep 2; exec bash $1\n");
  expect_same_with_slurm(study, {});
  EXPECT_EQ(slurm.arrays(), 1);
}

TEST(Slurm, ARefusedArrayEndsTheCommand) {
  const FakeSlurm slurm;
  slurm.write("refusal", "sbatch: error: Batch job submission failed: Invalid partition name specified\n");
  const StudyFolder folder(study);
  expect_refusal(folder.sweep({"--slurm"}), failed, {"sbatch took no job: ", "Invalid partition name specified"});
  EXPECT_FALSE(std::filesystem::exists(folder.database() + ".slurm"));
}

TEST(Slurm, IsNamedWhereItsProgramsAreMissing) {
  const FakeSlurm slurm;  // which gives the PATH back
  const StudyFolder folder(study);
  ::setenv("PATH", (folder / "bin").c_str(), 1);
  expect_refusal(folder.sweep({"--slurm"}), failed,
                 {"cannot start sbatch (No such file or directory)", "Slurm's programs on the PATH"});
}

TEST(Slurm, RefusesWhatCannotBe) {
  const StudyFolder folder(study);
  expect_refusal(folder.sweep({"--slurm", "--sbatch=--array=0-3"}), wrong, {"--sbatch: --array=0-3 is what Tandem says itself"});
  expect_refusal(folder.sweep({"--slurm", "--sbatch=--comment='a"}), wrong, {"a quote does not end"});
  expect_refusal(folder.sweep({"--slurm=0"}), wrong, {"--slurm", "'0'", "from 1 to 4096"});
  expect_refusal(folder.sweep({"--slurm=many"}), wrong, {"'many'"});
  expect_refusal(folder.sweep({"--sbatch=--time=1"}), wrong, {"--slurm"});
  expect_refusal(run_tandem({"slurm-task", folder / "nowhere"}), failed, {"no task of a Slurm array"});
}

TEST(Slurm, SplitsWordsAsAShellDoes) {
  EXPECT_THAT(sbatch_words(R"(-p cpu  --comment='it''s a "b"' --mem=\ 4G "")"),
              ElementsAre("-p", "cpu", "--comment=its a \"b\"", "--mem= 4G", ""));
  EXPECT_THAT(sbatch_words(""), IsEmpty());
}

/// The files of a folder of the spool.
std::size_t count_in(const StudyFolder& folder, const std::string& name) {
  std::error_code gone;
  std::size_t count = 0;
  for (std::filesystem::directory_iterator entry(folder.database() + ".slurm/" + name, gone), end; !gone && entry != end;
       entry.increment(gone))
    ++count;
  return count;
}

// The waiting process is killed before the tasks begin; they do all there is, and the next one only gathers.
TEST(Slurm, TasksGoOnWithoutWhoWaits) {
  const FakeSlurm slurm;
  slurm.write("task.sh", "until [[ -e $FAKE_SLURM/begin ]]; do sleep 0.02; done; exec bash $1\n");
  const StudyFolder plain(study), folder(study);
  ASSERT_EQ(plain.sweep().exit_code, done);
  auto killed = std::async(std::launch::async, [&] { return folder.sweep({"--slurm=2"}, {.kill_after = 1.5}); });
  EXPECT_EQ(killed.get().signal, SIGKILL);
  EXPECT_EQ(count_in(folder, "todo"), 8U);
  slurm.write("begin", "");
  for (int i = 0; i < 1000 && count_in(folder, "done") < 8; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(count_in(folder, "done"), 8U);
  const CommandResult next = folder.sweep({"--slurm=2"});
  EXPECT_EQ(next.exit_code, done) << next.err;
  EXPECT_TRUE(results_in(folder.database()) == results_in(plain.database()));
  EXPECT_EQ(slurm.arrays(), 1);
}

TEST(Slurm, TwoCannotWaitForTheSamePoints) {
  const FakeSlurm slurm;
  slurm.write("task.sh", "until [[ -e $FAKE_SLURM/begin ]]; do sleep 0.02; done; exec bash $1\n");
  const StudyFolder folder(study);
  auto first = std::async(std::launch::async, [&] { return folder.sweep({"--slurm=2"}); });
  for (int i = 0; i < 1000 && slurm.arrays() == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  expect_refusal(folder.sweep({"--slurm=2"}), failed, {"another tandem waits for the tasks that work in '"});
  slurm.write("begin", "");
  EXPECT_EQ(first.get().exit_code, done);
}

nlohmann::json best_of(const std::string& json) {
  nlohmann::json best;
  const nlohmann::json found = nlohmann::json::parse(json);
  for (const auto& plan : found.at("best")) best.push_back({plan.at("fields"), plan.at("step_time_s")});
  return best;
}

TEST(Slurm, ASearchFindsTheSamePlans) {
  const FakeSlurm slurm;
  const TemporaryFolder folder;
  const auto search = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"search", scenario_file("tiny-host"), "--out", folder / name, "--json", "-"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_tandem(arguments);
  };
  const CommandResult here = search("here.sqlite", {}), there = search("there.sqlite", {"--slurm=2"});
  ASSERT_EQ(here.exit_code, done) << here.err;
  ASSERT_EQ(there.exit_code, done) << there.err;
  EXPECT_EQ(best_of(there.out), best_of(here.out));
  EXPECT_TRUE(results_in(folder / "there.sqlite") == results_in(folder / "here.sqlite"));
  EXPECT_EQ(slurm.arrays(), 1) << "tasks wait for the next round of plans";
}

TEST(Slurm, AValidationScoresTheSame) {
  const FakeSlurm slurm;
  const TemporaryFolder folder;
  const std::string runs = TANDEM_SOURCE_DIR "/scenarios/runs/korthikanti-2022.csv";
  std::filesystem::copy_file(runs, folder / "runs.csv");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const CommandResult here = run_tandem({"validate", "runs.csv", "--csv", "-"});
  const CommandResult there = run_tandem({"validate", "runs.csv", "--csv", "-", "--slurm=2"});
  std::filesystem::current_path(before);
  ASSERT_EQ(there.exit_code, done) << there.err;
  EXPECT_EQ(there.out, here.out);
  EXPECT_EQ(slurm.arrays(), 1);
  EXPECT_FALSE(std::filesystem::exists(folder / "runs.validate.slurm"));
}

TEST(Spool, AStepIsTakenOnceAndComesBack) {
  const TemporaryFolder folder;
  Spool coordinator(folder / "spool"), a(folder / "spool"), b(folder / "spool");
  coordinator.open();
  for (const char* hash : {"1", "2", "3"}) coordinator.put(hash, std::string("scenario ") + hash);
  std::vector<std::string> taken;
  for (Spool* spool : {&a, &b, &a}) {
    const auto step = spool->take(spool == &a ? "7_0" : "7_1");
    ASSERT_TRUE(step);
    EXPECT_EQ(step->scenario, "scenario " + step->hash);
    taken.push_back(step->hash);
  }
  EXPECT_FALSE(b.take("7_1"));
  EXPECT_THAT(taken, testing::UnorderedElementsAre("1", "2", "3"));
  a.finish({taken[0], "7_0"}, "outcome");
  a.give_back({taken[2], "7_0"});
  EXPECT_THAT(coordinator.done(), ElementsAre(taken[0]));
  ASSERT_EQ(coordinator.taken().size(), 1U);
  EXPECT_EQ(coordinator.taken()[0].task, "7_1");
  EXPECT_EQ(b.take("7_1")->hash, taken[2]);
  EXPECT_EQ(coordinator.keep(taken[0]), "outcome");
  EXPECT_THAT(coordinator.done(), IsEmpty());
  EXPECT_TRUE(coordinator.is_kept(taken[0]));
  coordinator.remove();
  EXPECT_FALSE(a.is_there());
  a.finish({taken[2], "7_1"}, "too late");
  EXPECT_FALSE(std::filesystem::exists(folder / "spool"));
}

}  // namespace
}  // namespace tandem::cli::slurm_test
