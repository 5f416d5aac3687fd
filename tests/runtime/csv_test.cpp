// The CSV reader: what RFC 4180 allows comes back as it went in, and every cell knows its place.
#include "runtime/base/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::csv_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> texts(const std::vector<CsvCell>& cells) {
  std::vector<std::string> texts;
  for (const CsvCell& cell : cells) texts.push_back(cell.text);
  return texts;
}

TEST(Csv, TakesAnyLineEnd) {
  for (const std::string end : {"\n", "\r\n", "\r"}) {
    const CsvTable table = parse_csv("a,b" + end + "1,2" + end + end + ",4", "t.csv");
    EXPECT_THAT(texts(table.header), ElementsAre("a", "b"));
    ASSERT_EQ(table.rows.size(), 2U);
    EXPECT_THAT(texts(table.rows[0]), ElementsAre("1", "2"));
    EXPECT_THAT(texts(table.rows[1]), ElementsAre("", "4"));
    EXPECT_EQ(table.rows[1][1].place.text(), "t.csv:4:2");
  }
}

TEST(Csv, TakesAByteOrderMarkAway) {
  const CsvTable table = parse_csv("\xEF\xBB\xBFid,b\n1,2\n", "t.csv");
  EXPECT_EQ(table.header.front().text, "id");
  EXPECT_EQ(table.header[1].place.text(), "t.csv:1:4");
}

TEST(Csv, QuotedCellsHoldWhatSeparates) {
  const CsvTable table = parse_csv("a,b\n\"x,\"\"y\"\"\nz\",2\n3,4\n", "t.csv");
  EXPECT_EQ(table.rows[0][0].text, "x,\"y\"\nz");
  EXPECT_EQ(table.rows[0][1].place.text(), "t.csv:3:4");
  EXPECT_EQ(table.rows[1][0].place.text(), "t.csv:4:1");
}

TEST(Csv, FieldsComeBack) {
  for (const std::string text : {"", "plain", "a,b", "say \"x\"", "two\nlines", "\"\""}) {
    const CsvTable table = parse_csv("a,b\n" + csv_field(text) + ",end\n", "t.csv");
    EXPECT_EQ(table.rows[0][0].text, text);
    EXPECT_EQ(table.rows[0][1].text, "end");
  }
}

void expect_refused(const std::string& text, const std::string& words) {
  try {
    parse_csv(text, "t.csv");
    FAIL() << text;
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr(words));
  }
}

TEST(Csv, RefusesWhatIsNoTable) {
  expect_refused("a,b\n1,2\n3\n", "t.csv:3:1: the row has 1 cells, expected 2");
  expect_refused("a,b\n1,2,3\n", "t.csv:2:5: the row has 3 cells, expected 2");
  expect_refused("a,b\n1,\"2\n3,4\n", "t.csv:2:3: this quote never closes");
  expect_refused("a,b\n\"1\"x,2\n", "t.csv:2:4: text after the quote");
}

}  // namespace
}  // namespace tandem::csv_test
