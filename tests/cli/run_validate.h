#pragma once

#include <string>
#include <vector>

#include "tests/cli/run_command.h"
#include "tests/studies/runs_table.h"

namespace tandem::cli {

/// `tandem validate` of a table.
inline CommandResult run_validate(const RunsTable& table, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"validate", table.file(), "--jobs", "2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_tandem(arguments);
}

}  // namespace tandem::cli
