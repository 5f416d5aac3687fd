// README.md and docs/commands: what stands under a command is what the command prints.
#include "tests/cli/pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <string>
#include <vector>

namespace tandem::cli::pages_test {
namespace {

/// What these print is of the machine on which they ran.
const Lines measure_this_machine{
    "tandem calibrate --backend host --scenario scenarios/tiny-host.yaml --budget 5 --out host.profile",
    "tandem crosscheck scenarios/tiny-host.yaml --backend host",
    "tandem execute scenarios/tiny-host.yaml --backend host --verify"};

/// These are left to the slow suite.
const Lines take_long{"tandem lint scenarios/moe-1t-16k.yaml --set parallelism.etp=1 --set training.recompute=none",
                      "tandem validate bench/accuracy/runs.csv --explain 10_dgxc_benchmarking-066"};

/// A block of a page, and the commands of the paragraph right above it, the last of which prints what it shows.
struct Sample {
  Lines commands, shown;
};

/// Adds a line of a paragraph of commands: another one, or more of the last.
void add_line(Lines& commands, const std::string& line) {
  if (line.starts_with("tandem") || commands.empty()) {
    commands.push_back(line);
  } else {
    commands.back() += '\n' + line;
  }
}

std::vector<Sample> samples_of(const std::string& page_name) {
  std::vector<Sample> samples;
  Lines commands;
  const Lines page = lines_of_page(page_name);
  for (std::size_t i = 0; i < page.size(); ++i) {
    const std::string& line = page[i];
    if (line.starts_with("```")) {
      const Lines block = block_at(page, i);
      if (!commands.empty()) samples.push_back({.commands = commands, .shown = block});
      commands.clear();
    } else if (line.starts_with("    ")) {
      if (i == 0 || page[i - 1].empty()) commands.clear();
      add_line(commands, line.substr(4));
    } else if (!line.empty()) {
      commands.clear();
    }
  }
  return samples;
}

std::vector<std::string> pages() {
  std::vector<std::string> pages{"README.md"};
  for (const auto& file : std::filesystem::directory_iterator(TANDEM_SOURCE_DIR "/docs/commands"))
    pages.push_back("docs/commands/" + file.path().filename().string());
  std::ranges::sort(pages);
  return pages;
}

/// Leaves out what the run itself took, and what the last digits of a loss are, which OpenBLAS's kernels for the processor
/// decide.
std::string without_what_varies(std::string text) {
  text = std::regex_replace(text, std::regex("(loss [0-9]+\\.[0-9]{5})[0-9]+"), "$1");
  for (const char* const cost :
       {"in [0-9.]+ m?s and [0-9]+ MB", "bounded in [0-9.]+ m?s", "failed; in [0-9.]+ m?s", "in [0-9.]+ s \\(host\\)"})
    text = std::regex_replace(text, std::regex(cost), "in so long");
  return text;
}

/// What is shown, cut where "..." stands for any number of lines.
std::vector<Lines> parts_of(const Lines& shown) {
  std::vector<Lines> parts(1);
  for (const std::string& line : shown) {
    if (line == "...") {
      parts.emplace_back();
    } else {
      parts.back().push_back(line);
    }
  }
  return parts;
}

/// Expects the first part where the output begins, the last where it ends, and the others between them in their order.
void expect_shown(const std::vector<Lines>& parts, const std::string& printed) {
  const Lines lines = lines_of(printed);
  auto at = lines.begin();
  for (const Lines& part : parts) {
    const bool is_first = &part == &parts.front(), is_last = &part == &parts.back();
    const auto found = is_last ? std::find_end(at, lines.end(), part.begin(), part.end())
                               : std::search(at, lines.end(), part.begin(), part.end());
    at = found + std::min<std::ptrdiff_t>(std::ssize(part), lines.end() - found);
    if (at - found == std::ssize(part) && (!is_first || found == lines.begin() || part.empty()) &&
        (!is_last || at == lines.end()))
      continue;
    ADD_FAILURE() << "the page shows\n" << text_of(part) << "which is not in its place in\n" << printed;
    return;
  }
}

void expect_printed(const Sample& sample, const PagesFolder& folder, Seconds time_limit = usual_time_limit) {
  SCOPED_TRACE(sample.commands.back());
  std::string printed;
  for (const std::string& command : sample.commands) printed = without_what_varies(folder.printed_by(command, time_limit));
  const std::vector<Lines> parts = parts_of(lines_of(without_what_varies(text_of(sample.shown))));
  if (parts.size() == 1) {
    EXPECT_EQ(text_of(parts.front()), printed);
  } else {
    expect_shown(parts, printed);
  }
}

bool is_among(const Lines& commands, const Sample& sample) {
  return std::ranges::find(commands, sample.commands.back()) != commands.end();
}

class EachPage : public testing::TestWithParam<std::string> {};

TEST_P(EachPage, ShowsWhatCommandsPrint) {
  const PagesFolder folder;
  for (const Sample& sample : samples_of(GetParam()))
    if (!is_among(measure_this_machine, sample) && !is_among(take_long, sample)) expect_printed(sample, folder);
}

std::string name_of(const testing::TestParamInfo<std::string>& page) {
  std::string name = std::filesystem::path(page.param).stem();
  std::erase(name, '-');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Pages, EachPage, testing::ValuesIn(pages()), name_of);

TEST(SlowPages, ShowWhatLongCommandsPrint) {
  const PagesFolder folder;
  for (const std::string& page : pages())
    for (const Sample& sample : samples_of(page))
      if (is_among(take_long, sample)) expect_printed(sample, folder, 1200);
}

TEST(Pages, HaveTheCommandsThatAreLeftOut) {
  std::map<std::string, int> times;
  for (const std::string& page : pages())
    for (const Sample& sample : samples_of(page)) ++times[sample.commands.back()];
  EXPECT_GE(times.size(), 20U);
  for (const Lines& commands : {measure_this_machine, take_long})
    for (const std::string& command : commands) EXPECT_EQ(times[command], 1) << command;
}

/// The table of README.md has fields of my-run.yaml, and the step times to which they lead.
TEST(Pages, ShowStepTimesOfChangedFields) {
  const PagesFolder folder;
  const std::regex row("\\| (as it stands|`--set [^|]+`) \\| ([0-9.]+ s) \\|"), step("step time +([0-9.]+ m?s)");
  std::size_t rows = 0;
  for (const std::string& line : lines_of_page("README.md")) {
    std::smatch cells, printed;
    if (!std::regex_match(line, cells, row)) continue;
    const std::string set = cells[1].str().starts_with("`") ? cells[1].str().substr(1, cells[1].length() - 2) : "";
    const std::string text = folder.printed_by("tandem simulate my-run.yaml " + set);
    ASSERT_TRUE(std::regex_search(text, printed, step)) << text;
    EXPECT_EQ(cells[2], printed[1]) << set;
    ++rows;
  }
  EXPECT_GE(rows, 8U);
}

}  // namespace
}  // namespace tandem::cli::pages_test
