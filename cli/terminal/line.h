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

  /// Whether there is such a terminal.
  bool is_shown() const { return terminal_; }
  /// What a text may take: a line that breaks could not be rewritten. The terminal may change it at any time.
  std::size_t width() const;
  /// Cut to that width.
  void show(const std::string& text);
  /// Before something else is written.
  void take_away();

 private:
  bool terminal_;
  bool visible_ = false;
};

}  // namespace tandem::cli
