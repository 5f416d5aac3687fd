#include "tests/cli/help_text.h"

#include <algorithm>
#include <sstream>

namespace tandem::cli {
namespace {

/// The first words of the lines below `heading`, up to an empty line. What is indented further goes on with a line.
std::vector<std::string> listed(const std::string& help, const std::string& heading) {
  std::istringstream lines(help.substr(std::min(help.find(heading), help.size())));
  std::vector<std::string> words;
  std::string line;
  std::getline(lines, line);  // the heading
  while (std::getline(lines, line) && !line.empty())
    if (line.starts_with("  ") && line[2] != ' ') words.push_back(line.substr(2, line.find(' ', 2) - 2));
  return words;
}

}  // namespace

std::vector<std::string> subcommands_in(const std::string& help) { return listed(help, "Subcommands:"); }

std::vector<std::string> options_in(const std::string& help) {
  std::vector<std::string> names;
  for (const std::string& one : listed(help, "Options:")) {
    std::istringstream in(one);
    for (std::string name; std::getline(in, name, ',');) names.push_back(name);
  }
  return names;
}

}  // namespace tandem::cli
