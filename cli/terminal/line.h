#pragma once

#include <cstddef>
#include <string>

namespace tandem::cli {

/// A line on standard error that is rewritten as work goes on, where that is a terminal, and taken away at the end.
class TerminalLine {
 public:
  TerminalLine();
  ~TerminalLine();
  TerminalLine(const TerminalLine&) = delete;
  TerminalLine& operator=(const TerminalLine&) = delete;

  /// Whether standard error is a terminal.
  bool is_shown() const { return terminal_; }
  /// How many columns a text may take: a line that wraps could not be rewritten. The terminal may be resized at any time.
  std::size_t width() const;
  /// Shows `text`, cut to that width.
  void show(const std::string& text);
  /// Removes the line, before something else is written.
  void take_away();

 private:
  bool terminal_;
  bool visible_ = false;
};

}  // namespace tandem::cli
