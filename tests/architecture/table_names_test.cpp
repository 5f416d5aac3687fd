// The name of a schedule and that of a mesh axis stand in one source each, its table: everybody else asks the table.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
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

/// By name: the sources that have it between quotes and alone there. What follows `//` is comment.
std::map<std::string, std::set<std::string>> sources_of(const std::set<std::string>& names) {
  std::map<std::string, std::set<std::string>> sources;
  for (const std::string& source : sources_below(code_folders)) {
    std::ifstream file(root / source);
    for (std::string line; std::getline(file, line);) {
      const std::string code = line.substr(0, line.find("//"));
      for (const std::string& name : names)
        if (code.find('"' + name + '"') != std::string::npos) sources[name].insert(source);
    }
  }
  return sources;
}

TEST(TableNames, AScheduleIsNamedInOneSource) {
  const std::string table = "scenarios/schedules/schedule_table.cpp";
  const std::set<std::string> names = matches(table, R"re(\.name = "([^"]+)")re");
  ASSERT_TRUE(names.contains("1f1b"));
  ASSERT_GE(names.size(), 6U);
  for (const auto& [name, sources] : sources_of(names)) EXPECT_EQ(sources, std::set{table}) << name;
}

TEST(TableNames, AMeshAxisIsNamedInOneSource) {
  const std::string table = "runtime/dag/axis.h";
  std::set<std::string> names = matches(table, R"re("([a-z]+)"[,}])re");
  ASSERT_EQ(names, (std::set<std::string>{"none", "tp", "cp", "ep", "dp", "pp"}));
  names.erase("none");  // a word that much else goes by
  for (const auto& [name, sources] : sources_of(names)) EXPECT_EQ(sources, std::set{table}) << name;
}

}  // namespace
}  // namespace tandem::architecture::table_names_test
