// Killed at any moment, a sweep loses no row that was there, and the next one does only what is missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <future>
#include <random>
#include <thread>

#include "tests/cli/json_result.h"
#include "tests/cli/study.h"

namespace tandem::cli::sweep_resume_test {
namespace {

using testing::HasSubstr;

constexpr int done = 0;
constexpr int failed = 1;
constexpr int points = 8;
const std::string study = tiny_study("grid: {parallelism.dp: [1, 2, 4, 8], training.micro_batch: [1, 2]}\n");

std::map<std::string, std::string> results_of(const std::string& database) {
  std::map<std::string, std::string> results;
  for (const auto& [hash, row] : rows_of(database)) results[hash] = without_run_costs(row.at("json"));
  return results;
}

struct Undisturbed {
  Seconds wall = 0;
  std::map<std::string, std::string> results;
};

Undisturbed sweep_undisturbed() {
  const StudyFolder folder(study);
  const CommandResult run = folder.sweep({"--jobs", "2"});
  EXPECT_EQ(run.exit_code, done) << run.err;
  EXPECT_EQ(rows_of(folder.database()).size(), static_cast<std::size_t>(points));
  return {run.wall, results_of(folder.database())};
}

/// A point that ran twice would have another row: its start, seconds and memory differ.
void expect_kept(const std::map<std::string, Row>& before, const std::map<std::string, Row>& after) {
  for (const auto& [hash, row] : before) {
    ASSERT_TRUE(after.contains(hash));
    EXPECT_EQ(after.at(hash), row);
  }
}

TEST(SweepResume, AfterAKillDoesOnlyWhatIsMissing) {
  const Undisturbed whole = sweep_undisturbed();
  constexpr int kills = 10, most_kills = 50;
  std::mt19937 random(405);
  std::uniform_real_distribution<Seconds> anywhere(0.01, whole.wall);
  std::size_t kept = 0;
  for (int i = 0; i < kills || (kept == 0 && i < most_kills); ++i) {
    // A machine that others use may be slower now: then later.
    const Seconds moment = anywhere(random) * std::max(1, i / kills * 2);
    SCOPED_TRACE("killed after " + std::to_string(moment) + " s");
    const StudyFolder folder(study);
    folder.sweep({"--jobs", "2"}, {.kill_after = moment});
    const auto before = rows_of(folder.database());
    kept += before.size();
    const CommandResult run = folder.sweep({"--jobs", "2"});
    ASSERT_EQ(run.exit_code, done) << run.err;
    EXPECT_THAT(run.out, HasSubstr("; " + std::to_string(before.size()) + " of them from before"));
    expect_kept(before, rows_of(folder.database()));
    EXPECT_EQ(results_of(folder.database()), whole.results);
  }
  EXPECT_GT(kept, 0U) << "all kills came before the first row";
}

TEST(SweepResume, ComesToItsEndHoweverOftenItIsKilled) {
  const Undisturbed whole = sweep_undisturbed();
  const StudyFolder folder(study);
  constexpr int most_kills = 100;
  int exit_code = -1;
  std::map<std::string, Row> before;
  Seconds moment = 0.6 * whole.wall;
  for (int i = 0; i < most_kills && exit_code != done; ++i) {
    exit_code = folder.sweep({"--jobs", "2"}, {.kill_after = moment}).exit_code;
    const auto after = rows_of(folder.database());
    expect_kept(before, after);
    if (after.size() == before.size()) moment *= 1.5;  // a machine that others use may be slower now
    before = after;
  }
  EXPECT_EQ(exit_code, done);
  EXPECT_EQ(results_of(folder.database()), whole.results);
}

/// A study whose first point takes long enough to be caught.
const std::string slow_first = "scenario: " + scenario_file("llama3-405b-16k") +
                               "\nset: {cluster.gpus: ~, cluster.gpu.memory_GiB: 1000}\n"
                               "points:\n"
                               "  - {parallelism.dp: 8, training.global_batch: 256}\n"
                               "  - {parallelism.dp: 8, training.global_batch: 128}\n";

TEST(SweepResume, AKilledPointIsAFailedRowThatIsTriedAgain) {
  const StudyFolder folder(slow_first);
  auto run = std::async(std::launch::async, [&] { return folder.sweep({"--jobs", "1"}); });
  const pid_t sweep = children_of(::getpid()).front();
  ::kill(children_of(sweep).front(), SIGKILL);
  const CommandResult result = run.get();
  EXPECT_EQ(result.exit_code, failed);
  EXPECT_EQ(result.err, "tandem: 1 of 2 points failed; the same command tries them again\n");
  EXPECT_THAT(result.out, HasSubstr("killed by signal 9"));
  EXPECT_THAT(result.out, HasSubstr("2 points, 1 done, 1 failed"));
  EXPECT_THAT(column_of(folder.database(), "status"), testing::ElementsAre("failed", "done"));
  const auto before = rows_of(folder.database());

  const CommandResult again = folder.sweep();
  EXPECT_EQ(again.exit_code, done) << again.err;
  EXPECT_THAT(again.out, HasSubstr("2 points, 2 done; 1 of them from before"));
  const auto after = rows_of(folder.database());
  for (const auto& [hash, row] : before) EXPECT_EQ(after.at(hash) == row, row.at("status") == "done");
  EXPECT_FALSE(after.begin()->second.contains("message"));
}

class SweepSignals : public testing::TestWithParam<int> {};

TEST_P(SweepSignals, EndItWithItsProcesses) {
  const StudyFolder folder(slow_first);
  auto run = std::async(std::launch::async, [&] { return folder.sweep({"--jobs", "1"}); });
  const pid_t sweep = children_of(::getpid()).front();
  const pid_t worker = children_of(sweep).front();
  ::kill(sweep, GetParam());
  const CommandResult result = run.get();
  if (GetParam() == SIGKILL) {
    EXPECT_EQ(result.signal, SIGKILL);
  } else {
    expect_refusal(result, failed, {"interrupted (", "0 of 2 points stored; the same command does the others"});
  }
  EXPECT_EQ(rows_of(folder.database()).size(), 0U);
  // Gone at once, or as soon as the kernel passes its parent's death on and something reaps it.
  constexpr int attempts = 2000;
  const auto runs = [&] {
    const std::string stat = stat_of(std::to_string(worker));
    return !stat.empty() && stat.find(") Z ") == std::string::npos;
  };
  for (int i = 0; i < attempts && runs(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(runs());
}

INSTANTIATE_TEST_SUITE_P(All, SweepSignals, testing::Values(SIGINT, SIGTERM, SIGHUP, SIGKILL),
                         [](const auto& test) { return std::string(::sigabbrev_np(test.param)); });

}  // namespace
}  // namespace tandem::cli::sweep_resume_test
