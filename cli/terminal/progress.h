#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "cli/terminal/line.h"
#include "cli/terminal/screen.h"
#include "runtime/base/progress.h"
#include "runtime/base/stopwatch.h"
#include "runtime/base/units.h"

namespace tandem::cli {

/// "simulating  [########------------]  41 %, about 12 s left", without the last part where `left` is not known. `what` is
/// shortened to what `width` columns leave.
std::string progress_text(const std::string& what, double share, std::optional<Seconds> left,
                          std::size_t width = Screen::unlimited);

/// Shows how far long work has come, in a line on standard error where that is a terminal. Shows nothing in the first `patience`
/// seconds, nor where `--verbose` says what is done, and leaves nothing at the end. Estimates when a part ends from the share of
/// it that is done.
class ProgressBar final : public Progress {
 public:
  explicit ProgressBar(Seconds patience = 2);

  bool is_shown() const override { return shown_; }
  void begin(std::string part) override;
  void show(std::optional<double> share) override;
  std::unique_ptr<Watch> watch(std::string part, Share share) override;
  /// Shows the caller's own share and its estimate of the time that is `left`.
  void show(const std::string& what, double share, std::optional<Seconds> left);
  void take_away() override { line_.take_away(); }

 private:
  using Clock = std::chrono::steady_clock;

  TerminalLine line_;
  bool shown_;
  Seconds patience_;
  Stopwatch whole_, part_;
  Clock::time_point drawn_;
  std::string what_;

  bool is_due();
};

}  // namespace tandem::cli
