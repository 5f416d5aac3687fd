#pragma once

#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <optional>

#include "cli/terminal/table.h"
#include "runtime/base/quantities.h"
#include "studies/crosscheck/comparison.h"

namespace tandem::cli {

inline TextCell milliseconds(Seconds time) { return {fmt::format("{:.3f}", time * 1e3)}; }

/// How far the simulated time is off; "-" where nothing was measured.
inline TextCell error_of(const SimulatedAndMeasured& time) {
  constexpr double worth_a_look = 0.1;
  const std::optional<double> error = time.error();
  if (!error) return {"-"};
  return {percent_change(*error), std::abs(*error) > worth_a_look ? Style::yellow : Style::green};
}

}  // namespace tandem::cli
