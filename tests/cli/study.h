#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "tests/cli/run_command.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::cli {

/// A folder with a study, and the database that its sweeps fill.
class StudyFolder {
 public:
  explicit StudyFolder(const std::string& study_text);

  std::string study() const { return folder_ / "study.yaml"; }
  std::string database() const { return folder_ / "study.sqlite"; }
  std::string operator/(const std::string& name) const { return folder_ / name; }
  void write(const std::string& name, const std::string& text) const;

  /// `tandem sweep` of the study into the database.
  CommandResult sweep(const std::vector<std::string>& more = {}, const CommandOptions& options = {}) const;

 private:
  TemporaryFolder folder_;
};

/// A row by column; what is null is left out.
using Row = std::map<std::string, std::string>;

/// All rows of a database, by their hash. Read with SQLite itself.
std::map<std::string, Row> rows_of(const std::string& database);

/// The rows' values of one column, in the order of the points.
std::vector<std::string> column_of(const std::string& database, const std::string& column);

/// Runs statements of SQL on a database.
void execute_sql(const std::string& database, const std::string& sql);

/// Expects of a row what `simulate` says of the same scenario, but for what the run cost.
void expect_simulated(const Row& row, const std::vector<std::string>& simulate_arguments);

/// A study of a scenario that simulates in an instant, with these lines.
std::string tiny_study(const std::string& lines);

/// Processes whose parent is `parent`. Waits for the first.
std::vector<pid_t> children_of(pid_t parent);
/// Returns a process's line in /proc; nothing where it has gone, be it while it is looked at.
std::string stat_of(const std::string& process);

}  // namespace tandem::cli
