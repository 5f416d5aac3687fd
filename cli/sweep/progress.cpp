#include "cli/sweep/progress.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <iostream>

namespace tandem {
namespace {

constexpr const char* clear_line = "\r\x1b[K";

std::string rounded(Seconds time) {
  constexpr Seconds minute = 60;
  constexpr Seconds hour = 60 * minute;
  if (time < 2 * minute) return fmt::format("{:.0f} s", time);
  if (time < 2 * hour) return fmt::format("{:.0f} min", time / minute);
  return fmt::format("{:.1f} h", time / hour);
}

}  // namespace

std::string progress_line(std::size_t done, std::size_t total, std::size_t running, std::size_t finished, Seconds elapsed) {
  std::string line = fmt::format("{}/{} points, {} running", done, total, running);
  if (finished > 0) {
    const Seconds left = elapsed / static_cast<double>(finished) * static_cast<double>(total - done);
    line += fmt::format(", about {} left", rounded(left));
  }
  return line;
}

Progress::Progress(std::size_t total, std::size_t done_before)
    : terminal_(::isatty(STDERR_FILENO) == 1), total_(total), done_before_(done_before) {}

Progress::~Progress() {
  if (terminal_) std::cerr << clear_line << std::flush;
}

void Progress::show(std::size_t done, std::size_t running) const {
  if (!terminal_) return;
  const Seconds elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  std::cerr << clear_line << progress_line(done, total_, running, done - done_before_, elapsed) << std::flush;
}

}  // namespace tandem
