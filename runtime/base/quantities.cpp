#include "runtime/base/quantities.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>

namespace tandem {

std::string duration(Seconds time) {
  if (std::abs(time) >= 1) return fmt::format("{:.3f} s", time);
  if (std::abs(time) >= 1e-3) return fmt::format("{:.2f} ms", time * 1e3);
  return fmt::format("{:.1f} us", time * 1e6);
}

std::string change_of(Seconds time) { return (time > 0 ? "+" : "") + duration(time); }

std::string rounded(Seconds time) {
  constexpr Seconds minute = 60;
  constexpr Seconds hour = 60 * minute;
  if (time < 2 * minute) return fmt::format("{:.0f} s", time);
  if (time < 2 * hour) return fmt::format("{:.0f} min", time / minute);
  return fmt::format("{:.1f} h", time / hour);
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string percent_change(double share) { return fmt::format("{:+.1f} %", 100 * share); }

std::string gigabytes(Bytes bytes) { return fmt::format("{:.2f}", static_cast<double>(bytes) / 1e9); }

}  // namespace tandem
