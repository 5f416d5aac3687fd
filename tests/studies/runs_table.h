#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/base/csv.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::studies {

/// Cells of a run by column.
using RunCells = std::map<std::string, std::string>;

/// A run of a GPT that simulates in an instant, on eight H100, with these cells in the place of its own. Its step took 0.01 s.
RunCells tiny_run(const RunCells& changes = {});

/// Tiny runs as a table, in a folder of its own. A column is there if a run has it.
class RunsTable {
 public:
  explicit RunsTable(const std::vector<RunCells>& runs);
  /// The table itself.
  explicit RunsTable(const std::string& text);

  std::string file() const { return folder_ / "runs.csv"; }
  std::string operator/(const std::string& name) const { return folder_ / name; }

 private:
  TemporaryFolder folder_;
};

/// The text of such a table, columns in alphabetical order.
std::string table_text(const std::vector<RunCells>& runs);

}  // namespace tandem::studies
