// Tables that cannot be trusted are refused with exit code 2 before anything runs; each sentence names the place and the remedy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/run_validate.h"

namespace tandem::cli::validate_wrong_table_test {
namespace {

constexpr int done = 0;
constexpr int wrong_input = 2;

/// Line 1 of a table that is right but for what a case does to it, and line 2.
const std::string header = "id,gpu,n_gpus,preset,sequence,global_batch";
const std::string run = "a,h100-sxm-80gb,8,llama3-8b,8192,8";

struct WrongTable {
  std::string name;
  std::string text;
  std::vector<std::string> words;  ///< the first follows the file's name
};
void PrintTo(const WrongTable& wrong, std::ostream* out) { *out << wrong.name; }

class WrongTables : public testing::TestWithParam<WrongTable> {};

TEST_P(WrongTables, AreRefused) {
  const RunsTable table(GetParam().text);
  std::vector<std::string> words = GetParam().words;
  words.front() = "tandem: " + table.file() + words.front();
  expect_refusal(run_validate(table), wrong_input, words);
}

std::string many_columns() {
  std::string columns = header, cells = run;
  for (int i = 0; i < 1000; ++i) {
    columns += ",extra_measurement_" + std::to_string(i);
    cells += ",1";
  }
  return columns + "\n" + cells + "\n";
}

/// A run with one column more.
std::string with(const std::string& column, const std::string& cell) {
  return header + "," + column + "\n" + run + "," + cell + "\n";
}

const WrongTable tables[] = {
    {"Empty", "\n", {": is empty"}},
    {"NoRows", header + "\n", {": the table has no rows"}},
    {"ColumnMissing",
     "id,gpu,n_gpus,preset,sequence\na,h100-sxm-80gb,8,llama3-8b,8192\n",
     {":1:1: ", "the column global_batch is missing"}},
    {"ModelMissing",
     "id,gpu,n_gpus,sequence,global_batch,layers\na,h100-sxm-80gb,8,8192,8,4\n",
     {":1:1: ", "preset and hidden are missing"}},
    {"ColumnTwice", with("gpu", "h100-sxm-80gb"), {":1:44: ", "the column `gpu` is there twice, first in column 4"}},
    {"ColumnMisspelt", with("microbatch", "1"), {":1:44: ", "no column `microbatch`; did you mean `micro_batch`?"}},
    {"ColumnWithoutName", with("", "1"), {":1:44: ", "has no name"}},
    {"ThousandColumns", many_columns(), {":1:", "has 1006 columns, expected at most 200"}},
    {"Ragged", header + "\n" + run + ",9\n", {":2:36: ", "has 7 cells, expected 6"}},
    {"QuoteNeverCloses", header + "\n\"" + run + "\n", {":2:1: ", "quote never closes"}},
    {"IdTwice", header + "\n" + run + "\n" + run + "\n", {":3:1: ", "the id `a` is that of line 2, too"}},
    {"IdBlank", header + "\n,h100-sxm-80gb,8,llama3-8b,8192,8\n", {":2:1: ", "the id is blank"}},
    {"NoNumber", with("tp", "two"), {":2:36: ", "tp is `two`, expected a whole number of GPUs from 1 to"}},
    {"NoWholeNumber", with("tp", "1.5"), {":2:36: ", "tp is `1.5`"}},
    {"Negative", with("step_time_s", "-3"), {":2:36: ", "step_time_s is `-3`, expected seconds from"}},
    {"NotFinite", with("step_time_s", "inf"), {":2:36: ", "step_time_s is `inf`"}},
    {"NicInBytes", with("nic_gbps", "50e9"), {":2:36: ", "nic_gbps is `50e9`, expected Gbit/s from 1 to 20000"}},
    {"NvlinkInBytes", with("nvlink_GBps", "450000000000"), {":2:36: ", "expected GB/s in one direction"}},
    {"NoFlag", with("sp", "yes"), {":2:36: ", "sp is `yes`, expected 0, 1 or nothing"}},
    {"PercentAsText", with("mfu_pct", "41 %"), {":2:36: ", "mfu_pct is `41 %`"}},
};
INSTANTIATE_TEST_SUITE_P(Validate, WrongTables, testing::ValuesIn(tables), [](const auto& wrong) { return wrong.param.name; });

TEST(ValidateTable, MissingFileSuggestsItsNeighbour) {
  const RunsTable table(header + "\n" + run + "\n");
  expect_refusal(run_tandem({"validate", table / "run.csv"}), wrong_input, {"cannot be read", "did you mean", "runs.csv"});
}

TEST(ValidateTable, ColumnsOfOnesOwnAreLeftAlone) {
  const RunsTable table({tiny_run({{"cluster_owner", "us"}, {"notes", "x"}})});
  const CommandResult result = run_validate(table);
  EXPECT_EQ(result.exit_code, done) << result.err;
  EXPECT_THAT(result.err, testing::HasSubstr("the column cluster_owner means nothing here"));
  EXPECT_THAT(result.err, testing::Not(testing::HasSubstr("notes")));
}

}  // namespace
}  // namespace tandem::cli::validate_wrong_table_test
