#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tandem::cli {

/// What a command showed on a terminal, where both of its outputs go.
struct Shown {
  int exit_code = -1;  ///< -1 when a signal ended it
  std::string text;    ///< with escapes, lines end in LF
};

/// Why no pseudo-terminal can be opened here; empty where one can.
std::string missing_terminal();

/// Runs the program under test on a pseudo-terminal of so many columns, until it ends. TERM is xterm, COLUMNS and NO_COLOR are
/// unset, unless `environment` sets them.
Shown run_on_terminal(const std::vector<std::string>& arguments, int columns = 80,
                      const std::vector<std::pair<std::string, std::string>>& environment = {});

/// Calls a function on a pseudo-terminal, in a process of its own.
Shown call_on_terminal(const std::function<void()>& function, int columns = 80);

/// Without colours, and without lines that were taken away.
std::string as_plain_text(const std::string& shown);

/// Of the longest line, in characters.
std::size_t widest_line(const std::string& text);

}  // namespace tandem::cli
