#pragma once

#include <cstddef>
#include <string>

#include "cli/terminal/line.h"
#include "cli/terminal/screen.h"
#include "runtime/base/stopwatch.h"
#include "runtime/base/units.h"
#include "studies/runner/run_progress.h"

namespace tandem::cli {

/// "12/40 points, 2 running  [######--------------]  30 %, about 3 min left". The estimate goes on at the rate of the `finished`
/// points that took `elapsed`; there is none before the first.
std::string progress_line(std::size_t done, std::size_t total, std::size_t running, std::size_t finished, Seconds elapsed,
                          std::size_t width = Screen::unlimited);

/// Rewrites that line on standard error, where that is a terminal, and takes it away at the end.
class PointsProgress {
 public:
  void show(const RunProgress& progress);

 private:
  TerminalLine line_;
  Stopwatch stopwatch_;
};

}  // namespace tandem::cli
