#include "tests/cli/pages.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/base/text_file.h"
#include "tests/cli/run_command.h"

namespace tandem::cli {
namespace {

const std::string repository = TANDEM_SOURCE_DIR "/";

/// Files that commands of the pages read, each with a page that shows it and how it begins there.
struct ShownFile {
  std::string name, page, beginning;
};
const std::vector<ShownFile> shown_files{{"my-run.yaml", "README.md", "name: my-run"},
                                         {"study.yaml", "docs/commands/sweep.md", "scenario: my-run.yaml"},
                                         {"my-search.yaml", "docs/commands/search.md", "name: my-search"}};

Lines shown_lines(const ShownFile& file) {
  const Lines page = lines_of_page(file.page);
  for (std::size_t at = 0; at + 1 < page.size(); ++at)
    if (page[at].starts_with("```") && page[at + 1].starts_with(file.beginning)) return block_at(page, at);
  ADD_FAILURE() << file.page << " does not show " << file.name;
  return {};
}

}  // namespace

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string text_of(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

Lines lines_of_page(const std::string& page) { return lines_of(read_text_file(repository + page, "a page")); }

Lines block_at(const Lines& page, std::size_t& at) {
  Lines block;
  while (++at < page.size() && !page[at].starts_with("```")) block.push_back(page[at]);
  return block;
}

PagesFolder::PagesFolder() {
  for (const std::string name : {"scenarios", "bench"}) std::filesystem::create_symlink(repository + name, folder_ / name);
  std::filesystem::create_symlink(TANDEM_BINARY, folder_ / "tandem");
  std::filesystem::create_symlink(TANDEM_RUN_BINARY, folder_ / "tandem-run");
  for (const ShownFile& file : shown_files) std::ofstream(folder_ / file.name) << text_of(shown_lines(file));
}

std::string PagesFolder::printed_by(const std::string& command, Seconds time_limit) const {
  const std::string there = "cd '" + folder_.path().string() + "' && PATH=.:$PATH && " + command;
  const CommandResult run = run_program("/bin/bash", {"--norc", "-c", there}, {.time_limit = time_limit});
  EXPECT_NE(run.exit_code, -1) << command;
  EXPECT_NE(run.exit_code, 2) << command << '\n' << run.err;
  return run.out + run.err;
}

}  // namespace tandem::cli
