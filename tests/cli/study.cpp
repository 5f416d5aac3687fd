#include "tests/cli/study.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "tests/cli/json_result.h"

namespace tandem::cli {
namespace {

/// From the number of a process to that of its parent: the fourth word of /proc/N/stat, after the name in brackets.
pid_t parent_of(const std::string& process) {
  const std::string stat = stat_of(process);
  const std::size_t name_end = stat.rfind(')');
  return name_end == std::string::npos ? 0 : static_cast<pid_t>(std::stol(stat.substr(name_end + 4)));
}

std::vector<pid_t> processes_below(pid_t parent) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") == std::string::npos && parent_of(name) == parent)
      found.push_back(static_cast<pid_t>(std::stol(name)));
  }
  return found;
}

/// A connection that closes itself.
class Opened {
 public:
  explicit Opened(const std::string& path) {
    EXPECT_EQ(sqlite3_open(path.c_str(), &database_), SQLITE_OK);
    sqlite3_busy_timeout(database_, 60'000);
  }
  ~Opened() { sqlite3_close(database_); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  sqlite3* get() const { return database_; }

 private:
  sqlite3* database_ = nullptr;
};

/// SQLite's own text of a number has 15 digits, which is less than it holds.
std::string text_of(sqlite3_stmt* row, int column) {
  if (sqlite3_column_type(row, column) != SQLITE_FLOAT) return reinterpret_cast<const char*>(sqlite3_column_text(row, column));
  char text[64];
  return {text, std::to_chars(text, std::end(text), sqlite3_column_double(row, column)).ptr};
}

}  // namespace

std::string stat_of(const std::string& process) {
  const std::ifstream file("/proc/" + process + "/stat");
  std::ostringstream line;
  line << file.rdbuf();  // whose errors are no exceptions, unlike those of its iterators
  return line.str();
}

StudyFolder::StudyFolder(const std::string& study_text) { write("study.yaml", study_text); }

void StudyFolder::write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }

CommandResult StudyFolder::sweep(const std::vector<std::string>& more, const CommandOptions& options) const {
  std::vector<std::string> arguments = {"sweep", study(), "--out", database()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_tandem(arguments, options);
}

std::map<std::string, Row> rows_of(const std::string& database) {
  const Opened opened(database);
  std::map<std::string, Row> rows;
  sqlite3_stmt* select = nullptr;
  // A sweep that was killed before it made the table leaves none.
  if (sqlite3_prepare_v2(opened.get(), "SELECT * FROM points", -1, &select, nullptr) != SQLITE_OK) return rows;
  while (sqlite3_step(select) == SQLITE_ROW) {
    Row row;
    for (int i = 0; i < sqlite3_column_count(select); ++i)
      if (sqlite3_column_type(select, i) != SQLITE_NULL) row[sqlite3_column_name(select, i)] = text_of(select, i);
    rows.emplace(row["hash"], row);
  }
  EXPECT_EQ(sqlite3_finalize(select), SQLITE_OK) << sqlite3_errmsg(opened.get());
  return rows;
}

void execute_sql(const std::string& database, const std::string& sql) {
  const Opened opened(database);
  EXPECT_EQ(sqlite3_exec(opened.get(), sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(opened.get());
}

std::vector<std::string> column_of(const std::string& database, const std::string& column) {
  std::map<int, std::string> by_point;
  for (auto& [hash, row] : rows_of(database)) by_point[std::stoi(row["point"])] = row[column];
  std::vector<std::string> values;
  for (const auto& [point, value] : by_point) values.push_back(value);
  return values;
}

void expect_simulated(const Row& row, const std::vector<std::string>& simulate_arguments) {
  std::vector<std::string> arguments = {"simulate"};
  arguments.insert(arguments.end(), simulate_arguments.begin(), simulate_arguments.end());
  arguments.insert(arguments.end(), {"--json", "-"});
  const CommandResult alone = run_tandem(arguments);
  ASSERT_EQ(alone.exit_code, 0) << alone.err;
  checked_result(alone.out);
  EXPECT_EQ(without_run_costs(row.at("json")), without_run_costs(alone.out));
}

std::string tiny_study(const std::string& lines) {
  return "scenario:\n"
         "  name: tiny\n"
         "  model: tiny-llama\n"
         "  cluster: {preset: dgx-h100}\n"
         "  parallelism: {tp: 1, dp: 4}\n"
         "  training: {sequence: 128, global_batch: 16, precision: bf16}\n" +
         lines;
}

std::vector<pid_t> children_of(pid_t parent) {
  constexpr int attempts = 20'000;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    std::vector<pid_t> children = processes_below(parent);
    if (!children.empty()) return children;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  throw std::runtime_error("process " + std::to_string(parent) + " started no other");
}

}  // namespace tandem::cli
