// scenarios/studies: the seconds in the tables of a page are those of the studies that the page names.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/cli/pages.h"
#include "tests/cli/study.h"

namespace tandem::cli::study_pages_test {
namespace {

std::vector<std::string> found_in(const std::string& text, const std::string& pattern) {
  std::vector<std::string> found;
  const std::regex expression(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at) found.push_back(at->str(1));
  return found;
}

/// Every number in a study's results, as a page prints it.
std::set<std::string> printed_numbers(const std::string& database) {
  std::set<std::string> numbers;
  for (const auto& [hash, row] : rows_of(database))
    for (const auto& [column, text] : row)
      for (const std::string& number : found_in(text, "([0-9]+\\.[0-9]+)")) {
        std::array<char, 32> printed{};
        std::snprintf(printed.data(), printed.size(), "%.3f", std::stod(number));
        numbers.emplace(printed.data());
      }
  return numbers;
}

TEST(SlowStudyPages, HaveTheFiguresOfTheirStudies) {
  const PagesFolder folder;
  std::size_t figures = 0;
  for (const auto& file : std::filesystem::directory_iterator(TANDEM_SOURCE_DIR "/scenarios/studies")) {
    if (file.path().extension() != ".md") continue;
    SCOPED_TRACE(file.path().filename());
    const Lines page = lines_of_page("scenarios/studies/" + file.path().filename().string());
    std::set<std::string> numbers;
    for (const std::string& study : found_in(text_of(page), "tandem sweep scenarios/studies/([a-z0-9-]+)\\.yaml")) {
      const std::string database = study + ".sqlite";
      folder.printed_by("tandem sweep scenarios/studies/" + study + ".yaml --out " + database, 2400);
      numbers.merge(printed_numbers(folder / database));
    }
    if (numbers.empty()) continue;
    // Of a table, what has three digits behind the point and no sign. Fractions are too many to say anything.
    for (const std::string& line : page)
      if (line.starts_with("|"))
        for (const std::string& figure : found_in(line, "[ *(]([1-9][0-9]*\\.[0-9]{3})(?![0-9])")) {
          EXPECT_TRUE(numbers.contains(figure)) << figure << " in " << line;
          ++figures;
        }
  }
  EXPECT_GE(figures, 300U);
}

}  // namespace
}  // namespace tandem::cli::study_pages_test
