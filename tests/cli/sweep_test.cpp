// A sweep simulates each point of a study once, into a row that holds what `simulate` says of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/terminal/points_progress.h"
#include "studies/runner/results_database.h"
#include "studies/sweep/point.h"
#include "tests/cli/json_result.h"
#include "tests/cli/study.h"
#include "tests/cli/terminal.h"

namespace tandem::cli::sweep_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int done = 0;
constexpr int failed = 1;

TEST(Sweep, TheLastFieldOfTheGridVariesFastest) {
  const StudyFolder folder(tiny_study("grid: {parallelism.dp: [1, 2], training.micro_batch: [1, 2, 4]}\n"));
  const CommandResult run = folder.sweep();
  ASSERT_EQ(run.exit_code, done) << run.err;
  EXPECT_THAT(column_of(folder.database(), "parallelism.dp"), ElementsAre("1", "1", "1", "2", "2", "2"));
  EXPECT_THAT(column_of(folder.database(), "training.micro_batch"), ElementsAre("1", "2", "4", "1", "2", "4"));
  EXPECT_THAT(column_of(folder.database(), "gpus"), ElementsAre("1", "1", "1", "2", "2", "2"));
}

TEST(Sweep, EveryPointMeetsEveryCellOfTheGrid) {
  const StudyFolder folder(
      tiny_study("set: {training.global_batch: 32}\n"
                 "points: [{parallelism.dp: 2}, {parallelism.tp: 2, parallelism.sp: true}]\n"
                 "grid: {training.micro_batch: [1, 2]}\n"));
  const CommandResult run = folder.sweep();
  ASSERT_EQ(run.exit_code, done) << run.err;
  EXPECT_THAT(column_of(folder.database(), "parallelism.dp"), ElementsAre("2", "2", "", ""));
  EXPECT_THAT(column_of(folder.database(), "parallelism.tp"), ElementsAre("", "", "2", "2"));
  EXPECT_THAT(column_of(folder.database(), "parallelism.sp"), ElementsAre("", "", "1", "1"));
  EXPECT_THAT(column_of(folder.database(), "training.micro_batch"), ElementsAre("1", "2", "1", "2"));
  EXPECT_THAT(column_of(folder.database(), "gpus"), ElementsAre("2", "2", "8", "8"));
}

TEST(Sweep, RowsHoldWhatSimulateSays) {
  for (const char* name : {"tiny-host", "llama3-8b-64", "mixtral-8x22b-8k"}) {
    SCOPED_TRACE(name);
    const std::string file = scenario_file(name);
    const StudyFolder folder("scenario: " + file + "\ngrid: {training.sequence: [2048, 4096]}\n");
    ASSERT_EQ(folder.sweep().exit_code, done);
    const auto rows = rows_of(folder.database());
    ASSERT_EQ(rows.size(), 2U);
    for (const auto& [hash, row] : rows)
      expect_simulated(row, {file, "--set", "training.sequence=" + row.at("training.sequence")});
  }
}

TEST(Sweep, RowsHoldTheScenarioComplete) {
  const StudyFolder folder(tiny_study("grid: {training.micro_batch: [2]}\n"));
  ASSERT_EQ(folder.sweep().exit_code, done);
  const Row row = rows_of(folder.database()).begin()->second;
  folder.write("complete.yaml", row.at("scenario_yaml"));
  expect_simulated(row, {folder / "complete.yaml"});
}

void expect_columns(const Row& row, const nlohmann::json& json, const std::string& prefix, int& count) {
  for (const auto& [key, value] : json.items()) {
    if (value.is_object()) {
      expect_columns(row, value, prefix + key + ".", count);
      continue;
    }
    ASSERT_TRUE(row.contains(prefix + key)) << prefix << key;
    const std::string& cell = row.at(prefix + key);
    if (value.is_number()) {
      EXPECT_DOUBLE_EQ(std::stod(cell), value.get<double>()) << key;
    } else if (value.is_string()) {
      EXPECT_EQ(cell, value.get<std::string>()) << key;
    } else if (value.is_boolean()) {
      EXPECT_EQ(cell, value.get<bool>() ? "1" : "0") << key;
    } else {
      EXPECT_EQ(nlohmann::json::parse(cell), value) << key;
    }
    ++count;
  }
}

TEST(Sweep, EveryKeyIsAColumn) {
  const StudyFolder folder(tiny_study("grid: {training.micro_batch: [2]}\n"));
  ASSERT_EQ(folder.sweep().exit_code, done);
  const Row row = rows_of(folder.database()).begin()->second;
  int count = 0;
  expect_columns(row, checked_result(row.at("json")), "", count);
  EXPECT_GE(count, 30);
  EXPECT_EQ(row.at("status"), "done");
  EXPECT_THAT(row.at("started"), testing::MatchesRegex("20..-..-..T..:..:..Z"));
  EXPECT_GT(std::stod(row.at("seconds")), 0);
}

TEST(Sweep, WhatDoesNotFitIsARowWithItsNumbers) {
  // The tiny model takes tens of megabytes, 0.01 GiB are eleven.
  const StudyFolder folder(tiny_study("grid: {cluster.gpu.memory_GiB: [0.01, 80]}\n"));
  const CommandResult run = folder.sweep();
  ASSERT_EQ(run.exit_code, done) << run.err;
  EXPECT_THAT(column_of(folder.database(), "status"), ElementsAre("oom", "done"));
  EXPECT_THAT(column_of(folder.database(), "memory.fits"), ElementsAre("0", "1"));
  const auto peaks = column_of(folder.database(), "memory.peak_bytes");
  EXPECT_EQ(peaks.front(), peaks.back());
  EXPECT_THAT(run.out, HasSubstr("2 points, 1 done, 1 oom; 0 of them from before"));
}

TEST(Sweep, TheRefusedAreRowsWhereTheStudySaysSo) {
  const StudyFolder folder(tiny_study("skip_invalid: true\ngrid: {parallelism.tp: [3, 4]}\n"));
  const CommandResult run = folder.sweep();
  ASSERT_EQ(run.exit_code, done) << run.err;
  EXPECT_THAT(column_of(folder.database(), "status"), ElementsAre("refused", "done"));
  const std::string place = folder.study() + ":8:25: ";
  EXPECT_THAT(column_of(folder.database(), "message").front(), testing::StartsWith(place + "tp 3 does not divide 8 heads"));
  const CommandResult again = folder.sweep();
  EXPECT_EQ(again.exit_code, done);
  EXPECT_THAT(again.out, HasSubstr("2 of them from before"));
}

TEST(Sweep, ChangedFilesAreSimulatedAgainAndCommentsAreNot) {
  const StudyFolder folder("scenario: base.yaml\ngrid: {training.micro_batch: [1, 2]}\n");
  const auto write_base = [&](const std::string& comment, const std::string& sequence) {
    folder.write(
        "base.yaml",
        comment + "\nmodel: ./model.yaml\ncluster: {preset: dgx-h100, gpus: 4}\ntraining: {global_batch: 8, " + sequence + "}\n");
  };
  const auto write_model = [&](const std::string& layers) {
    folder.write("model.yaml", "layers: " + layers + "\nhidden: 256\nheads: 8\nffn: 512\nvocab: 1024\n");
  };
  const auto kept = [&] {
    const CommandResult run = folder.sweep();
    EXPECT_EQ(run.exit_code, done) << run.err;
    const std::size_t at = run.out.find("; ");
    return at == std::string::npos ? "" : run.out.substr(at + 2, 1);
  };
  write_model("2");
  write_base("# a scenario", "sequence: 128");
  EXPECT_EQ(kept(), "0");
  write_base("# a comment, and a field in another place", "precision: bf16, sequence: 128");
  EXPECT_EQ(kept(), "0") << "a field that is given is another text than its default";
  write_base("# another comment", "sequence: 128, precision: bf16");
  EXPECT_EQ(kept(), "2");
  write_model("4");
  EXPECT_EQ(kept(), "0");
  write_base("# a scenario", "sequence: 256, precision: bf16");
  EXPECT_EQ(kept(), "0");
  write_model("2");
  write_base("# a scenario", "sequence: 128");
  EXPECT_EQ(kept(), "2");
  EXPECT_EQ(rows_of(folder.database()).size(), 8U);
}

TEST(Sweep, ARearrangedStudyKeepsItsResults) {
  const StudyFolder folder(tiny_study("grid: {training.micro_batch: [1, 2]}\n"));
  ASSERT_EQ(folder.sweep().exit_code, done);
  folder.write("study.yaml", tiny_study("name: other\npoints: [{training.micro_batch: 4}, {training.micro_batch: 2}]\n"
                                        "grid: {parallelism.zero: [0, ~]}\n"));
  const CommandResult run = folder.sweep();
  ASSERT_EQ(run.exit_code, done) << run.err;
  EXPECT_THAT(run.out, HasSubstr("4 points, 4 done; 1 of them from before"));
  for (const auto& [hash, row] : rows_of(folder.database())) {
    if (row.at("training.micro_batch") != "2" || row.contains("parallelism.zero")) continue;
    EXPECT_EQ(row.at("study"), "other");
    EXPECT_EQ(row.at("point"), "3");
  }
}

TEST(Sweep, NewKeysAddColumns) {
  const StudyFolder folder(tiny_study("grid: {training.micro_batch: [1, 2]}\n"));
  ASSERT_EQ(folder.sweep({"--shard", "0/2"}).exit_code, done);
  execute_sql(folder.database(), "ALTER TABLE points DROP COLUMN \"time_s.exposed.tp\"; ALTER TABLE points DROP COLUMN mfu");
  ASSERT_EQ(folder.sweep().exit_code, done);
  EXPECT_EQ(column_of(folder.database(), "mfu").front(), "");
  EXPECT_GT(std::stod(column_of(folder.database(), "mfu").back()), 0);
  EXPECT_EQ(column_of(folder.database(), "time_s.exposed.tp").back(), "0");
}

TEST(Sweep, KeysNamedLikeOtherColumnsHaveAnother) {
  std::vector<std::string> names;
  for (const NamedCell& cell : result_cells(R"({"Status": 1, "model": {"layers": 2}, "status_s": 3, "time_s": {"point": [4]}})"))
    names.push_back(cell.name);
  EXPECT_THAT(names, ElementsAre("result.Status", "result.model.layers", "status_s", "time_s.point"));
}

TEST(Sweep, PrintsNothingButTheTableIntoAPipe) {
  const StudyFolder folder(tiny_study("grid: {parallelism.dp: [2, 16]}\n"));
  const CommandResult run = folder.sweep();
  ASSERT_EQ(run.exit_code, done);
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(run.out, testing::MatchesRegex("  parallelism.dp  GPUs  step time, s +MFU  status\n"
                                             " +2 +2 +[0-9.]+ +[0-9.]+ %    done\n"
                                             " +16 +16 +[0-9.]+ +[0-9.]+ %    done\n"
                                             "\n2 points, 2 done; 0 of them from before; in .*study.sqlite\n"));
}

TEST(Sweep, ShowsItsProgressOnATerminal) {
  if (const std::string missing = missing_terminal(); !missing.empty()) GTEST_SKIP() << missing;
  const StudyFolder folder(tiny_study("grid: {parallelism.dp: [1, 2, 4]}\n"));
  const Shown run = run_on_terminal({"sweep", folder.study(), "--out", folder.database(), "--jobs", "1"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.text, HasSubstr("0/3 points, 1 running  [--------------------]   0 %\r"));
  EXPECT_THAT(run.text, testing::ContainsRegex("2/3 points, 1 running  .#+-+.  66 %, about [0-9]+ s left"));
}

TEST(Sweep, EstimatesTheTimeLeftFromTheRateSoFar) {
  EXPECT_EQ(progress_line(0, 40, 2, 0, 5), "0/40 points, 2 running  [--------------------]   0 %");
  EXPECT_EQ(progress_line(30, 40, 2, 10, 60), "30/40 points, 2 running  [###############-----]  75 %, about 60 s left");
  EXPECT_EQ(progress_line(10, 40, 2, 10, 60), "10/40 points, 2 running  [#####---------------]  25 %, about 3 min left");
  EXPECT_EQ(progress_line(10, 4010, 2, 10, 60), "10/4010 points, 2 running  [--------------------]   0 %, about 6.7 h left");
  EXPECT_EQ(progress_line(0, 40, 2, 0, 5, 50), "0/40 points, 2 ru...  [--------------------]   0 %");
}

TEST(Sweep, ADatabaseThatCannotBeWrittenFailsIt) {
  const StudyFolder folder(tiny_study("grid: {parallelism.dp: [1, 2]}\n"));
  const std::string study = folder.study();
  expect_refusal(run_tandem({"sweep", study, "--out", study}), failed, {"cannot keep results in '" + study, "not a database"});
  expect_refusal(run_tandem({"sweep", study, "--out", "/no/such/folder/a.sqlite"}), failed, {"unable to open database file"});
  expect_refusal(folder.sweep({"--csv", "/no/such/folder/a.csv"}), failed, {"cannot write '/no/such/folder/a.csv'"});
}

TEST(Sweep, AFullStandardOutputLosesNoRow) {
  const StudyFolder folder(tiny_study("grid: {parallelism.dp: [1, 2]}\n"));
  expect_refusal(folder.sweep({}, {.standard_output = StandardOutput::full_device}), failed,
                 {"standard output cannot be written"});
  EXPECT_THAT(column_of(folder.database(), "status"), ElementsAre("done", "done"));
}

std::vector<std::string> study_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(TANDEM_SOURCE_DIR "/scenarios/studies"))
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem());
  std::ranges::sort(names);
  return names;
}

class EveryStudy : public testing::TestWithParam<std::string> {};

// Without `skip_invalid` a refused point ends the sweep; with it, points would be lost without a word.
TEST_P(EveryStudy, LoadsItsScenarioAtEveryPoint) {
  const Study study = load_study(scenario_file("studies/" + GetParam()));
  EXPECT_EQ(study.name, GetParam());
  const std::vector<PointId> points = validated_points(study);
  EXPECT_GT(points.size(), 1U);
  EXPECT_EQ(points.size(), study.size());
  EXPECT_THAT(refusals(study, points), testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Shipped, EveryStudy, testing::ValuesIn(study_names()), [](const auto& test) {
  std::string name = test.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

/// What does not fit is a row that says so: these studies are about that.
TEST(Sweep, StudiesOfMemoryHavePlansThatFitAndPlansThatDoNot) {
  const auto statuses = [](const std::string& name) {
    const StudyFolder folder("");
    const CommandResult run = run_tandem({"sweep", scenario_file("studies/" + name), "--out", folder.database()});
    EXPECT_EQ(run.exit_code, done) << run.err;
    return column_of(folder.database(), "status");
  };
  EXPECT_THAT(statuses("5d-memory"), ElementsAre("done", "done", "oom", "oom", "oom", "oom"));
  EXPECT_THAT(statuses("5d-memory-gpt4-scale"), ElementsAre("done", "done", "oom", "oom", "oom"));
}

TEST(Sweep, ShippedStudiesRun) {
  for (const std::string name : {"llama3-405b-weak-scaling", "llama3-405b-strong-scaling"}) {
    const StudyFolder folder("");
    const CommandResult run =
        run_tandem({"sweep", scenario_file("studies/" + name), "--out", folder.database(), "--shard", "7/8"});
    ASSERT_EQ(run.exit_code, done) << run.err;
    EXPECT_THAT(column_of(folder.database(), "gpus"), ElementsAre("131072"));
    EXPECT_THAT(column_of(folder.database(), "status"), ElementsAre("done"));
    EXPECT_THAT(column_of(folder.database(), "study"), ElementsAre(name));
  }
}

}  // namespace
}  // namespace tandem::cli::sweep_test
