#pragma once

#include <string>
#include <vector>

#include "runtime/base/units.h"
#include "tests/cli/run_command.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::cli {

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& text);
/// The lines, each with its end.
std::string text_of(const Lines& lines);

/// The lines of a page, by its path in the repository: "docs/commands/sweep.md".
Lines lines_of_page(const std::string& page);

/// Reads a block of a page, which begins at `at` with ```, and leaves `at` at its end.
Lines block_at(const Lines& page, std::size_t& at);

/// The current folder as pages take it to be: that of the sources, and the files that pages show.
class PagesFolder {
 public:
  PagesFolder();

  std::string operator/(const std::string& name) const { return folder_ / name; }

  /// What a command prints there, as bash reads it. Fails the test where its input is wrong, or it takes longer.
  std::string printed_by(const std::string& command, Seconds time_limit = usual_time_limit) const;

 private:
  TemporaryFolder folder_;
};

}  // namespace tandem::cli
