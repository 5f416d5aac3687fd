#pragma once

#include <string>

#include "runtime/units.h"

namespace tandem {

/// A line on standard error that is rewritten as work goes on, where that is a terminal, and taken away at the end.
class TerminalLine {
 public:
  TerminalLine();
  ~TerminalLine();
  TerminalLine(const TerminalLine&) = delete;
  TerminalLine& operator=(const TerminalLine&) = delete;

  bool is_shown() const { return terminal_; }
  void show(const std::string& text) const;

 private:
  bool terminal_;
};

/// "40 s", "3 min", "1.5 h".
std::string rounded(Seconds time);

}  // namespace tandem
