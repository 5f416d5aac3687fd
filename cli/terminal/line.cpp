#include "cli/terminal/line.h"

#include <unistd.h>

#include <iostream>
#include <utility>

#include "cli/terminal/screen.h"

namespace tandem::cli {
namespace {

constexpr const char* clear_line = "\r\x1b[K";

}  // namespace

TerminalLine::TerminalLine() : terminal_(::isatty(STDERR_FILENO) == 1) {}

TerminalLine::~TerminalLine() { take_away(); }

std::size_t TerminalLine::width() const { return screen_on(STDERR_FILENO).width - 1; }

void TerminalLine::take_away() {
  if (std::exchange(visible_, false)) std::cerr << clear_line << std::flush;
}

void TerminalLine::show(const std::string& text) {
  visible_ = terminal_;
  if (terminal_) std::cerr << clear_line << shortened(text, width()) << std::flush;
}

}  // namespace tandem::cli
