// Each promise of docs/reliability.md names a test that holds it, and that there is.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace tandem::architecture::promises_test {
namespace {

namespace fs = std::filesystem;

const fs::path root = TANDEM_SOURCE_DIR;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void add_names(const std::string& text, const std::string& pattern, std::set<std::string>& names) {
  const std::regex regex(pattern);
  for (auto match = std::sregex_iterator(text.begin(), text.end(), regex); match != std::sregex_iterator(); ++match)
    names.insert(match->size() > 2 ? (*match)[1].str() + "." + (*match)[2].str() : (*match)[1].str());
}

/// `Suite.Name` of googletest, and what CMake calls the tests that are scripts.
std::set<std::string> names_of_tests() {
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / "tests")) {
    if (entry.path().extension() == ".cpp")
      add_names(text_of(entry.path()), R"(\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\))", names);
    else if (entry.path().filename() == "CMakeLists.txt")
      add_names(text_of(entry.path()), R"(\b(?:NAME|reliability_test\()\s*(\w+\.\w+))", names);
  }
  return names;
}

/// The rows of tables whose last column is of tests, by its cells.
std::vector<std::string> last_cells() {
  std::vector<std::string> cells;
  std::istringstream text(text_of(root / "docs/reliability.md"));
  std::string head, before;
  for (std::string line; std::getline(text, line); before = line) {
    if (line.starts_with("|---")) {
      head = before;
    } else if (!line.starts_with("|")) {
      head.clear();
    } else if (head.ends_with("| test |") || head.ends_with("| held by |")) {
      const std::size_t end = line.rfind('|'), begin = line.rfind('|', end - 1) + 1;
      cells.push_back(line.substr(begin, end - begin));
    }
  }
  return cells;
}

TEST(Promises, OfReliabilityNameTestsThatThereAre) {
  const std::set<std::string> tests = names_of_tests();
  const std::vector<std::string> cells = last_cells();
  EXPECT_GT(cells.size(), 10U);
  for (const std::string& cell : cells) {
    std::set<std::string> named;
    add_names(cell, R"(`(\w+\.\w+)`)", named);
    EXPECT_FALSE(named.empty()) << "a row ends with" << cell << "expected `Suite.Name` of a test that holds it";
    for (const std::string& name : named) EXPECT_TRUE(tests.contains(name)) << "there is no test " << name;
  }
}

}  // namespace
}  // namespace tandem::architecture::promises_test
