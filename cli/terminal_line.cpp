#include "cli/terminal_line.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <iostream>

namespace tandem {
namespace {

constexpr const char* clear_line = "\r\x1b[K";

}  // namespace

TerminalLine::TerminalLine() : terminal_(::isatty(STDERR_FILENO) == 1) {}

TerminalLine::~TerminalLine() {
  if (terminal_) std::cerr << clear_line << std::flush;
}

void TerminalLine::show(const std::string& text) const {
  if (terminal_) std::cerr << clear_line << text << std::flush;
}

std::string rounded(Seconds time) {
  constexpr Seconds minute = 60;
  constexpr Seconds hour = 60 * minute;
  if (time < 2 * minute) return fmt::format("{:.0f} s", time);
  if (time < 2 * hour) return fmt::format("{:.0f} min", time / minute);
  return fmt::format("{:.1f} h", time / hour);
}

}  // namespace tandem
