// `sweep --csv` writes what the database holds, and comes back the same from a reader of CSV.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "studies/sweep/points_csv.h"
#include "tests/cli/study.h"

namespace tandem::cli::sweep_csv_test {
namespace {

constexpr int done = 0;

/// Reads RFC 4180, line ends LF.
std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
  std::vector<std::vector<std::string>> lines(1, {""});
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' && quoted && i + 1 < text.size() && text[i + 1] == '"')
      lines.back().back() += text[i++];
    else if (c == '"')
      quoted = !quoted;
    else if (quoted || (c != ',' && c != '\n'))
      lines.back().back() += c;
    else if (c == ',')
      lines.back().emplace_back();
    else
      lines.emplace_back(1, "");
  }
  lines.pop_back();
  return lines;
}

void expect_same_value(const std::string& csv, const std::string& database, const std::string& column) {
  char* end = nullptr;
  const double number = std::strtod(csv.c_str(), &end);
  if (end != csv.c_str() && *end == '\0') {
    EXPECT_DOUBLE_EQ(number, std::stod(database)) << column;
  } else {
    EXPECT_EQ(csv, database) << column;
  }
}

TEST(SweepCsv, HoldsWhatTheDatabaseHolds) {
  const StudyFolder folder(
      tiny_study("skip_invalid: true\n"
                 "grid: {parallelism.tp: [2, 3], training.recompute: [none, [mlp, norm]]}\n"));
  const CommandResult run = folder.sweep({"--csv", folder / "out.csv"});
  ASSERT_EQ(run.exit_code, done) << run.err;
  const auto lines = parse_csv(read_all(folder / "out.csv"));
  ASSERT_EQ(lines.size(), 5U);
  const auto& columns = lines.front();
  EXPECT_THAT(columns, testing::Contains("parallelism.tp"));
  EXPECT_THAT(columns, testing::Contains("time_s.exposed.dp"));
  EXPECT_THAT(columns, testing::Not(testing::Contains("memory.stages")));
  auto rows = rows_of(folder.database());
  for (std::size_t i = 1; i < lines.size(); ++i) {
    ASSERT_EQ(lines[i].size(), columns.size());
    EXPECT_EQ(lines[i].front(), std::to_string(i - 1));
    Row& row = rows.at(lines[i].back());
    for (std::size_t c = 0; c < columns.size(); ++c) expect_same_value(lines[i][c], row[columns[c]], columns[c]);
  }
  EXPECT_EQ(lines[2][2], "[mlp, norm]");
}

TEST(SweepCsv, GoesToStandardOutputAlone) {
  const StudyFolder folder(tiny_study("grid: {parallelism.dp: [1, 2]}\n"));
  const CommandResult run = folder.sweep({"--csv", "-"});
  ASSERT_EQ(run.exit_code, done) << run.err;
  ASSERT_EQ(folder.sweep({"--csv", folder / "out.csv"}).exit_code, done);
  EXPECT_EQ(run.out, read_all(folder / "out.csv"));
  EXPECT_EQ(parse_csv(run.out).size(), 3U);
}

TEST(SweepCsv, QuotesWhatWouldBreakIt) {
  const std::string awkward = "a \"b\", c\nd";
  PointRow row;
  row.values = {{"name", awkward}};
  row.message = "x,y";
  const auto lines = parse_csv(to_csv({"name"}, {row}));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1][1], awkward);
  EXPECT_EQ(lines[1][3], "x,y");
}

}  // namespace
}  // namespace tandem::cli::sweep_csv_test
