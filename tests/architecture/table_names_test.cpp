// The name of a schedule and that of a mesh axis stand in one source each, its table: everybody else asks the table.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "tests/architecture/includes.h"

namespace tandem::architecture::table_names_test {
namespace {

namespace fs = std::filesystem;

const fs::path root = TANDEM_SOURCE_DIR;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What the expression's group matches, all over the file.
std::set<std::string> matches(const std::string& path, const char* expression) {
  const std::string text = text_of(root / path);
  const std::regex regex(expression);
  std::set<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match) found.insert((*match)[1]);
  return found;
}

struct Literal {
  std::string source;
  std::string text;
};

/// All literals of the sources, each between quotes of one line. What follows `//` is comment, and an include has none.
std::vector<Literal> all_literals() {
  const std::regex quoted(R"re("((?:[^"\\]|\\.)*)")re");
  std::vector<Literal> literals;
  for (const std::string& source : sources_below(code_folders)) {
    std::ifstream file(root / source);
    for (std::string line; std::getline(file, line);) {
      const std::string code = line.starts_with("#include") ? "" : line.substr(0, line.find("//"));
      for (std::sregex_iterator match(code.begin(), code.end(), quoted), end; match != end; ++match)
        literals.push_back({source, (*match)[1]});
    }
  }
  return literals;
}

/// The literals in which something matches, but for those of the source that may name it.
std::set<std::string> found_beside(const std::string& table, const std::regex& expression) {
  static const std::vector<Literal> literals = all_literals();
  std::set<std::string> found;
  for (const Literal& literal : literals)
    if (literal.source != table && std::regex_search(literal.text, expression))
      found.insert(literal.source + ": \"" + literal.text + '"');
  return found;
}

/// Matches a schedule's name as a whole word.
std::regex word(const std::string& name) { return std::regex("(^|[^\\w-])" + name + "($|[^\\w-])"); }

/// Matches an axis's name alone, or before its size: "tp 8", "tp {}", or "tp " at the end, where code adds the size. A path to a
/// field, such as "parallelism.tp", is another name, and so is "tp ring"; in prose about an axis there is nothing to ask.
std::regex axis_with_size(const std::string& name) { return std::regex("^" + name + "$|(^|[^\\w.-])" + name + "( $| [0-9{])"); }

TEST(TableNames, AreFoundInLiterals) {
  const auto finds = [](const std::regex& expression, const char* text) { return std::regex_search(text, expression); };
  EXPECT_TRUE(finds(word("1f1b"), "schedule 1f1b, which"));
  EXPECT_FALSE(finds(word("1f1b"), "interleaved-1f1b"));
  for (const char* sized : {"tp", "tp {} * pp", "is tp 8", " * tp "}) EXPECT_TRUE(finds(axis_with_size("tp"), sized)) << sized;
  for (const char* other : {"parallelism.tp", "tp ring", "etp {}", "parallelism.tp={}", "the tp * cp inside dp in order"})
    EXPECT_FALSE(finds(axis_with_size("tp"), other)) << other;
}

TEST(TableNames, AScheduleIsNamedInOneSource) {
  const std::string table = "scenarios/schedules/schedule_table.cpp";
  const std::set<std::string> names = matches(table, R"re(\.name = "([^"]+)")re");
  ASSERT_TRUE(names.contains("1f1b"));
  ASSERT_GE(names.size(), 6U);
  for (const std::string& name : names) EXPECT_EQ(found_beside(table, word(name)), std::set<std::string>{}) << name;
}

TEST(TableNames, AMeshAxisIsNamedInOneSource) {
  const std::string table = "runtime/dag/axis.h";
  std::set<std::string> names = matches(table, R"re("([a-z]+)"[,}])re");
  ASSERT_EQ(names, (std::set<std::string>{"none", "tp", "cp", "ep", "dp", "pp", "host"}));
  for (const char* other : {"none", "host"}) names.erase(other);
  for (const std::string& name : names) EXPECT_EQ(found_beside(table, axis_with_size(name)), std::set<std::string>{}) << name;
}

}  // namespace
}  // namespace tandem::architecture::table_names_test
