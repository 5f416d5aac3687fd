// docs/textbook.md: every command runs, and prints the figures that stand beside it, to their last digit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/base/csv.h"
#include "runtime/base/text_file.h"
#include "tests/cli/run_command.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::cli::textbook_test {
namespace {

using nlohmann::json;

/// A row of the page: a command, and the cell with its figures.
struct Row {
  std::string command, figures;
};

std::vector<Row> rows_of_page() {
  std::vector<Row> rows;
  std::istringstream page(read_text_file(TANDEM_SOURCE_DIR "/docs/textbook.md", "a page"));
  const std::regex row("\\| [^|]* \\| [^|]* \\| `tandem ([^|`]*)` \\| ([^|]*) \\|.*");
  for (std::string line; std::getline(page, line);)
    if (std::smatch found; std::regex_match(line, found, row)) rows.push_back({found[1], found[2]});
  return rows;
}

std::vector<std::string> words_of(const std::string& command) {
  std::vector<std::string> words;
  std::istringstream stream(command);
  for (std::string word; stream >> word;) words.push_back(word.starts_with("scenarios/") ? TANDEM_SOURCE_DIR "/" + word : word);
  return words;
}

/// What a command leaves: its text, its JSON result or the rows of its sweep, its trace.
struct Answer {
  std::string text;
  json result, trace;
  std::map<std::string, std::map<std::string, std::string>> points;
};

std::map<std::string, std::map<std::string, std::string>> points_of(const std::string& csv) {
  std::map<std::string, std::map<std::string, std::string>> points;
  const CsvTable table = parse_csv(csv, "the sweep's table");
  for (const std::vector<CsvCell>& row : table.rows) {
    std::map<std::string, std::string> point;
    for (std::size_t i = 0; i < row.size(); ++i) point[table.header[i].text] = row[i].text;
    points[point["point"]] = point;
  }
  return points;
}

Answer answer_of(const Row& row) {
  const TemporaryFolder folder;
  std::vector<std::string> arguments = words_of(row.command);
  const bool has_figures = row.figures.find("(`") != std::string::npos;
  const bool simulates = arguments.front() == "simulate", sweeps = arguments.front() == "sweep";
  if (simulates && has_figures) arguments.insert(arguments.end(), {"--json", folder / "r.json"});
  if (row.figures.find("trace: ") != std::string::npos)
    arguments.insert(arguments.end(), {"--trace", folder / "t.json", "--trace-ranks", "0"});
  if (sweeps) arguments.insert(arguments.end(), {"--out", folder / "s.sqlite", "--csv", folder / "s.csv"});
  const CommandResult run = run_tandem(arguments);
  EXPECT_TRUE(run.exit_code == 0 || !has_figures) << run.err;
  Answer answer{.text = run.out + run.err, .result = {}, .trace = {}, .points = {}};
  if (simulates && has_figures && run.exit_code == 0) {
    answer.result = json::parse(read_text_file(folder / "r.json", "a result"));
    std::ifstream trace(folder / "t.json");
    if (trace) answer.trace = json::parse(trace);
  }
  if (sweeps && run.exit_code == 0) answer.points = points_of(read_text_file(folder / "s.csv", "a table"));
  return answer;
}

/// "kinds: all_to_all (ep) forward count"
double of_kind(const json& kinds, const std::string& key) {
  std::smatch name;
  EXPECT_TRUE(std::regex_match(key, name, std::regex("(.*\\)|[a-z_]+) ([a-z-]+) (count|time_s)"))) << key;
  for (const json& kind : kinds)
    if (kind["name"] == name[1].str() && kind["phase"] == name[2].str()) return kind[name[3].str()];
  ADD_FAILURE() << "no kind " << key;
  return 0;
}

/// "trace: all_to_all bytes": the most that such a collective carries.
double in_trace(const json& trace, const std::string& op) {
  double most = 0;
  for (const json& event : trace["traceEvents"])
    if (event.contains("args") && event["args"].value("op", "") == op) most = std::max(most, event["args"].value("bytes", 0.0));
  return most;
}

double value_of(const Answer& answer, const std::string& key) {
  std::smatch part;
  if (std::regex_match(key, part, std::regex("point ([0-9]+): (.*)"))) {
    const auto point = answer.points.find(part[1]);
    if (point == answer.points.end() || !point->second.contains(part[2])) {
      ADD_FAILURE() << "no " << key;
      return 0;
    }
    return std::stod(point->second.at(part[2]));
  }
  if (std::regex_match(key, part, std::regex("kinds: (.*)"))) return of_kind(answer.result["kinds"], part[1]);
  if (std::regex_match(key, part, std::regex("trace: ([a-z_]+) bytes"))) return in_trace(answer.trace, part[1]);
  std::string path = "/" + key;
  std::ranges::replace(path, '.', '/');
  const json::json_pointer pointer(path);
  if (!answer.result.contains(pointer)) {
    ADD_FAILURE() << "no " << key;
    return 0;
  }
  return answer.result[pointer];
}

/// The value as the page writes it: in this unit, with so many digits behind the point.
void expect_printed(const std::string& figure, const std::string& unit, double value) {
  std::string digits = figure;
  std::erase(digits, ',');
  const std::size_t point = digits.find('.');
  const double step = std::pow(10.0, point == std::string::npos ? 0 : -static_cast<double>(digits.size() - point - 1));
  const std::map<std::string, double> units{{"%", 0.01}, {"GB", 1e9}, {"MB", 1e6}, {"s", 1}, {"ranks", 1}, {"", 1}};
  ASSERT_TRUE(units.contains(unit)) << unit;
  EXPECT_NEAR(std::stod(digits), value / units.at(unit), 0.5000001 * step);
}

TEST(Textbook, CommandsPrintTheFiguresBesideThem) {
  const std::vector<Row> rows = rows_of_page();
  EXPECT_GE(rows.size(), 30U);
  std::size_t figures = 0, quotes = 0;
  const std::regex figure("([0-9][0-9.,]*)(?: (%|GB|MB|s|ranks))? \\(`([^`]+)`\\)"), quote("\"([^\"]+)\"");
  for (const Row& row : rows) {
    SCOPED_TRACE(row.command);
    const Answer answer = answer_of(row);
    for (std::sregex_iterator found(row.figures.begin(), row.figures.end(), figure), end; found != end; ++found, ++figures) {
      SCOPED_TRACE(found->str());
      expect_printed((*found)[1], (*found)[2], value_of(answer, (*found)[3]));
    }
    for (std::sregex_iterator found(row.figures.begin(), row.figures.end(), quote), end; found != end; ++found, ++quotes)
      EXPECT_THAT(answer.text, testing::HasSubstr((*found)[1].str()));
  }
  EXPECT_GE(figures, 40U);
  EXPECT_GE(quotes, 6U);
}

}  // namespace
}  // namespace tandem::cli::textbook_test
