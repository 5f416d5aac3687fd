// Wrong studies are refused with exit code 2 before anything runs; each sentence names the place and the remedy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/cli/study.h"

namespace tandem::cli::sweep_wrong_study_test {
namespace {

constexpr int wrong_input = 2;

/// A study of the tiny scenario, which takes the first six lines, with these lines from the seventh on.
struct WrongStudy {
  std::string name;
  std::string lines;
  std::vector<std::string> words;  ///< the first follows the file's name
};
void PrintTo(const WrongStudy& wrong, std::ostream* out) { *out << wrong.name; }

class WrongStudies : public testing::TestWithParam<WrongStudy> {};

TEST_P(WrongStudies, AreRefused) {
  const StudyFolder folder(tiny_study(GetParam().lines));
  std::vector<std::string> words = GetParam().words;
  words.front() = "tandem: " + folder.study() + words.front();
  expect_refusal(folder.sweep(), wrong_input, words);
  EXPECT_FALSE(std::filesystem::exists(folder.database()));
}

const WrongStudy studies[] = {
    {"NothingVaries", "name: x\n", {":1:1: ", "neither grid nor points"}},
    {"UnknownKey", "gird: {parallelism.dp: [1]}\n", {":7:1: ", "no field `gird`", "did you mean `grid`?"}},
    {"EmptyGrid", "grid: {}\n", {":7:7: ", "study.grid is empty, expected a mapping"}},
    {"EmptyList", "grid: {parallelism.dp: []}\n", {":7:24: ", "study.grid.parallelism.dp is empty, expected a list"}},
    {"NoList", "grid: {parallelism.dp: 8}\n", {":7:24: ", "study.grid.parallelism.dp is `8`, expected a list"}},
    {"EmptyPoints", "points: []\n", {":7:9: ", "study.points is empty, expected a list of points"}},
    {"PointsAreNoList", "points: {parallelism.dp: 8}\n", {":7:9: ", "study.points is a mapping, expected a list"}},
    {"EmptyPoint", "points: [{parallelism.dp: 8}, {}]\n", {":7:31: ", "a point is empty, expected a mapping"}},
    {"PointIsNoMapping", "points: [8]\n", {":7:10: ", "a point is `8`, expected a mapping"}},
    {"SetIsNoMapping", "set: [a]\ngrid: {parallelism.dp: [1]}\n", {":7:6: ", "study.set is a list, expected a mapping"}},
    {"ValueTwice", "grid: {parallelism.dp: [1, 2, 1]}\n", {":7:31: ", "lists `1` twice"}},
    {"PointTwice",
     "points: [{parallelism.dp: 2}, {parallelism.dp: 1}, {parallelism.data_parallel_size: 2}]\n",
     {":7:85: ", "the same scenario as parallelism.dp=2"}},
    {"PointTwiceByDefault",
     "points: [{parallelism.dp: 4}, {training.global_batch: 16}]\n",
     {":7:55: ", "training.global_batch=16 is the same scenario as parallelism.dp=4"}},
    {"FieldInSetAndGrid",
     "set: {parallelism.dp: 2}\ngrid: {parallelism.dp: [1]}\n",
     {":8:8: ", "`parallelism.dp` stands in study.set, too, on line 7"}},
    {"FieldInPointsAndGrid",
     "points: [{parallelism.dp: 2}]\ngrid: {parallelism.dp: [1]}\n",
     {":8:8: ", "`parallelism.dp` stands in study.points, too, on line 7"}},
    {"UnknownSection", "grid: {paralelism.dp: [1]}\n", {":7:8: ", "no field `paralelism`; did you mean `parallelism`?"}},
    {"UnknownField", "grid: {parallelism.dpp: [1]}\n", {":7:8: ", "no field `dpp`; did you mean `pp`?"}},
    {"UnknownFieldInSet", "set: {parallelism.dpp: 1}\ngrid: {parallelism.dp: [1]}\n", {":7:7: ", "no field `dpp`"}},
    {"NoPath", "grid: {parallelism..dp: [1]}\n", {":7:8: ", "`parallelism..dp` names no field, expected a path"}},
    {"NoPathInSet", "set: {.dp: 1}\ngrid: {parallelism.dp: [1]}\n", {":7:7: ", "`.dp` names no field, expected a path"}},
    {"WrongType",
     "grid: {parallelism.dp: [1, two]}\n",
     {":7:28: ", "parallelism.dp is `two`", "(at the point parallelism.dp=two)"}},
    {"WrongEverywhere",
     "grid: {parallelism.tp: [3, 2], training.micro_batch: [1, 2, 4]}\n",
     {":7:25: ", "tp 3 does not divide 8 heads", "(at the point parallelism.tp=3 training.micro_batch=1, and at 2 more)"}},
    {"UnknownPreset", "grid: {model: [tiny-lama]}\n", {":7:16: ", "did you mean `tiny-llama`?"}},
    {"TooMany",
     "grid:\n  training.sequence: &v [1,2,3,4,5,6,7,8,9,10]\n  a.a: *v\n  a.b: *v\n  a.c: *v\n  a.d: *v\n  a.e: *v\n",
     {":8:3: ", "more than 100,000 points"}},
};
INSTANTIATE_TEST_SUITE_P(Lines, WrongStudies, testing::ValuesIn(studies), [](const auto& test) { return test.param.name; });

TEST(WrongStudy, EveryWrongPointIsTold) {
  const StudyFolder folder(tiny_study("grid: {parallelism.tp: [3, 4, 5]}\n"));
  const CommandResult run = folder.sweep();
  EXPECT_EQ(run.exit_code, wrong_input);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, testing::MatchesRegex("tandem: [^\n]*study.yaml:7:25: tp 3 does not divide[^\n]*\n"
                                             "tandem: [^\n]*study.yaml:7:31: tp 5 does not divide[^\n]*\n"));
}

TEST(WrongStudy, ManyWrongPointsAreCounted) {
  std::string values = "3";
  for (int tp = 5; tp < 53; tp += 2) values += ", " + std::to_string(tp);
  const StudyFolder folder(tiny_study("grid: {parallelism.tp: [" + values + "]}\n"));
  const CommandResult run = folder.sweep();
  EXPECT_EQ(run.exit_code, wrong_input);
  EXPECT_EQ(std::ranges::count(run.err, '\n'), 21);
  EXPECT_THAT(run.err, testing::EndsWith("tandem: 5 more like these\n"));
}

void expect_wrong(const std::string& text, const std::string& place, const std::vector<std::string>& words) {
  const StudyFolder folder(text);
  std::vector<std::string> all = words;
  all.push_back("tandem: " + folder.study() + place);
  expect_refusal(folder.sweep(), wrong_input, all);
}

TEST(WrongStudy, NeedsAScenario) {
  const std::string grid = "grid: {parallelism.dp: [1]}\n";
  expect_wrong(grid, ":1:1: ", {"study.scenario is missing"});
  expect_wrong("scenario: nowhere.yaml\n" + grid, ":1:11: ", {"nowhere.yaml", "expected a path from the study's folder"});
  expect_wrong("scenario: [a]\n" + grid, ":1:11: ", {"the scenario is a list"});
  expect_wrong("model: llama3-8b\n", ":1:1: ", {"study has no field `model`", "scenario, name, set, grid"});
}

TEST(WrongStudy, WrongOptionsAreRefused) {
  const StudyFolder folder(tiny_study("grid: {parallelism.dp: [1]}\n"));
  for (const char* shard : {"1", "1/", "/2", "2/2", "3/2", "-1/2", "0/0", "a/b", "1/2/3", "0/2x"})
    expect_refusal(folder.sweep({"--shard", shard}), wrong_input,
                   {"--shard", "expected i/n with i from 0", "tandem sweep --help"});
  for (const char* jobs : {"0", "-1", "many", "5000"}) expect_refusal(folder.sweep({"--jobs", jobs}), wrong_input, {"--jobs"});
  expect_refusal(run_tandem({"sweep"}), wrong_input, {"study is required; see tandem sweep --help"});
  expect_refusal(folder.sweep({"--csv", ""}), wrong_input, {"--csv", "expected a path"});
}

}  // namespace
}  // namespace tandem::cli::sweep_wrong_study_test
