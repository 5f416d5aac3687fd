// Tables, lines and colours for a screen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "cli/terminal/markdown.h"
#include "cli/terminal/page.h"
#include "cli/terminal/table.h"
#include "runtime/base/quantities.h"
#include "tests/cli/terminal.h"

namespace tandem::cli::terminal_table_test {
namespace {

using Kind = Column::Kind;
using testing::ElementsAre;

Table parts_of_a_car() {
  Table table({{"part", Kind::name}, {"count", Kind::number, 1}, {"kg"}, {"share", Kind::bar, 2}, {"", Kind::note}});
  table.add({{"wheel"}, {"4"}, {"72.5"}, bar_of(0.25, Style::cyan), {"of steel, and rubber around it, which wears off"}});
  table.add({{"engine"}, {"1", Style::red}, {"145", Style::strong}, bar_of(0.5, Style::plain, '+'), {}});
  table.add({{"a very long name of a part"}, {"12"}, {"7"}, bar_of(0.02, Style::plain), {}});
  return table;
}

// clang-format off
TEST(Table, IsAsWideAsWhatItHolds) {
  const std::string full =
      "  part                        count    kg  share\n"
      "  wheel                           4  72.5  ##########                                of steel, and rubber around it, which wears off\n"
      "  engine                          1   145  ++++++++++++++++++++\n"
      "  a very long name of a part     12     7  #\n";
  EXPECT_EQ(parts_of_a_car().text({}), full);
  EXPECT_EQ(parts_of_a_car().width(), 132);
  EXPECT_EQ(parts_of_a_car().text({.width = 132}), full);
}

TEST(Table, ShortensBarsThenBreaksNotes) {
  EXPECT_EQ(parts_of_a_car().text({.width = 105}),
      "  part                        count    kg  share\n"
      "  wheel                           4  72.5  ###            of steel, and rubber around it, which wears off\n"
      "  engine                          1   145  +++++++\n"
      "  a very long name of a part     12     7\n");
  EXPECT_EQ(parts_of_a_car().text({.width = 90}),
      "  part                        count    kg  share\n"
      "  wheel                           4  72.5  ###         of steel, and rubber around it,\n"
      "                                                       which wears off\n"
      "  engine                          1   145  +++++\n"
      "  a very long name of a part     12     7\n");
}

TEST(Table, LeavesOutColumnsThenShortensNames) {
  EXPECT_EQ(parts_of_a_car().text({.width = 75}),
      "  part                          kg  share\n"
      "  wheel                       72.5  ###         of steel, and rubber around\n"
      "                                                it, which wears off\n"
      "  engine                       145  +++++\n"
      "  a very long name of a part     7\n"
      "  no room for: count\n");
  EXPECT_EQ(parts_of_a_car().text({.width = 50}),
      "  part                kg\n"
      "  wheel             72.5  of steel, and rubber\n"
      "                          around it, which wears\n"
      "                          off\n"
      "  engine             145\n"
      "  a very long n...     7\n"
      "  no room for: count, share\n");
}

TEST(Table, RunsOfEqualRowsAreOne) {
  Table table({{"stage"}, {"GB"}, {"", Kind::note}});
  const std::vector<std::string> sizes = {"6", "7", "7", "7", "8", "7", "7"};
  for (std::size_t stage = 0; stage < sizes.size(); ++stage) table.add_numbered(stage, {{sizes[stage]}, {}});
  table.add_numbered(9, {{"7"}, {}});
  table.add_numbered(10, {{"7"}, {"fullest"}});
  EXPECT_EQ(table.text({}),
      "  stage  GB\n"
      "      0   6\n"
      "    1-3   7\n"
      "      4   8\n"
      "    5-6   7\n"
      "      9   7\n"
      "     10   7  fullest\n");
}
// clang-format on

TEST(Table, ColoursAreAllThatAColouredScreenAdds) {
  for (const std::size_t width : {40, 60, 80, 132}) {
    const std::string coloured = parts_of_a_car().text({.width = width, .coloured = true});
    EXPECT_THAT(coloured, testing::HasSubstr("\x1b[1m145\x1b[0m"));
    EXPECT_EQ(as_plain_text(coloured), parts_of_a_car().text({.width = width}));
  }
}

// Numbers cannot be shortened, and what is left beside them is the narrowest that names and notes get.
TEST(Table, FitsWhateverItHolds) {
  std::mt19937 random(1);
  const auto up_to = [&random](std::size_t most) { return std::uniform_int_distribution<std::size_t>(0, most)(random); };
  const auto text = [&](std::size_t most) {
    std::string words;
    for (std::size_t length = up_to(most); words.size() < length;) words += std::string(1 + up_to(8), 'x') + ' ';
    return words.empty() ? words : words.substr(0, words.size() - 1);
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<Column> columns = {{text(30), Kind::name}, {"number"}};
    const std::size_t more = up_to(8);
    for (std::size_t i = 0; i < more; ++i) columns.push_back({text(15), Kind::number, static_cast<int>(i) + 1});
    columns.push_back({"", Kind::bar, 9});
    columns.push_back({"", Kind::note});
    Table table(columns);
    for (int row = 0; row < 5; ++row) {
      std::vector<TextCell> cells = {{text(60)}, {"12"}};
      for (std::size_t i = 0; i < more; ++i) cells.push_back({std::string(up_to(12), '7')});
      cells.push_back(bar_of(0.1 * static_cast<double>(up_to(10)), Style::plain));
      cells.push_back({text(100)});
      table.add(cells);
    }
    for (const std::size_t width : {60, 80, 120}) EXPECT_LE(widest_line(table.text({.width = width})), width);
    EXPECT_LE(widest_line(table.text({})), table.width());
  }
}

TEST(Table, NamesCannotSteerTheTerminal) {
  Table table({{"", Kind::name}});
  table.add({{"a\x1b[31mb\nc"}});
  EXPECT_EQ(table.text({}), "  a?[31mb?c\n");
  EXPECT_EQ(Page({}).line("\a title").text(), "? title\n");
}

TEST(Table, CountsCharactersAndNotBytes) {
  EXPECT_EQ(columns_of("größe"), 5U);
  EXPECT_EQ(shortened("größer", 5), "gr...");
  EXPECT_EQ(shortened("größer", 6), "größer");
  EXPECT_EQ(shortened("ööööö", 4), "ö...");
  EXPECT_EQ(shortened("abc", 2), "..");
  Table table({{"", Kind::name}, {""}});
  table.add({{"öl"}, {"1"}});
  table.add({{"oil"}, {"2"}});
  EXPECT_EQ(table.text({}), "  öl   1\n  oil  2\n");
}

TEST(Wrapped, BreaksAtSpacesWhereThereAreSome) {
  EXPECT_THAT(wrapped("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(wrapped("one two three", 13), ElementsAre("one two three"));
  EXPECT_THAT(wrapped("unbreakable it is", 5), ElementsAre("unbreakable", "it is"));
  EXPECT_THAT(wrapped("", 5), ElementsAre(""));
}

TEST(Page, LinesHang) {
  EXPECT_EQ(Page({.width = 12}).line("one two three four", Style::plain, 2).text(), "  one two\n    three\n    four\n");
  EXPECT_EQ(Page({}).line("one").heading("two").text(), "one\n\ntwo\n");
  EXPECT_EQ(Page({.coloured = true}).heading("two").text(), "\n\x1b[1mtwo\x1b[0m\n");
}

TEST(Markdown, HasTablesWithoutBarsAndHeadings) {
  const std::string expected =
      "**a car**\n"
      "\n"
      "of \\[four\\] parts\n"
      "\n"
      "#### By part\n"
      "\n"
      "| part | count | kg |  |\n"
      "| --- | ---: | ---: | --- |\n"
      "| wheel | 4 | 72.5 | of steel, and rubber around it, which wears off |\n"
      "| engine | 1 | 145 |  |\n"
      "| a very long name of a part | 12 | 7 |  |\n"
      "\n"
      "the end\n";
  Page page({.markdown = true});
  page.line("a car", Style::strong).line("of [four] parts", Style::plain, 2).heading("By part").table(parts_of_a_car());
  EXPECT_EQ(page.empty_line().empty_line().line("the end").text(), expected);
}

// A name of the input must show as it is: no markup, no HTML, no row or column of a table, nobody mentioned.
TEST(Markdown, NamesCannotMarkUp) {
  EXPECT_EQ(markdown_of("all_reduce (tp)"), "all\\_reduce (tp)");
  EXPECT_EQ(markdown_of("<img src=x> & `rm` **b** [a](b) @root"),
            "&lt;img src=x&gt; &amp; \\`rm\\` \\*\\*b\\*\\* \\[a\\](b) @<!-- -->root");
  EXPECT_EQ(markdown_of("- item"), "\\- item");
  EXPECT_EQ(markdown_of("--set a=b"), "--set a=b");
  EXPECT_EQ(markdown_of("# title"), "\\# title");
  Table table({{"name", Kind::name}});
  table.add({{"a|b\nc"}});
  EXPECT_EQ(table.text({.markdown = true}), "| name |\n| --- |\n| a\\|b?c |\n");
}

TEST(Numbers, HaveTheUnitThatFits) {
  EXPECT_EQ(duration(4.8651), "4.865 s");
  EXPECT_EQ(duration(0.74611), "746.11 ms");
  EXPECT_EQ(duration(0.0005043), "504.3 us");
  EXPECT_EQ(change_of(-0.063), "-63.00 ms");
  EXPECT_EQ(change_of(1.742), "+1.742 s");
  EXPECT_EQ(percent(0.5371), "53.7 %");
  EXPECT_EQ(percent_change(0.031), "+3.1 %");
  EXPECT_EQ(gigabytes(77'304'000'000), "77.30");
}

}  // namespace
}  // namespace tandem::cli::terminal_table_test
