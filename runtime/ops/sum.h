#pragma once

#include <array>
#include <cstdint>

namespace tandem {

/// term(0) + ... + term(count - 1) in double precision. Independent lanes let the compiler vectorise the sum.
template <typename Term>
double sum_of(std::int64_t count, Term term) {
  constexpr std::int64_t lane_count = 8;
  std::array<double, lane_count> lanes{};
  const std::int64_t whole = count / lane_count * lane_count;
  for (std::int64_t i = 0; i < whole; i += lane_count)
    for (std::int64_t lane = 0; lane < lane_count; ++lane) lanes[static_cast<std::size_t>(lane)] += term(i + lane);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  for (std::int64_t i = whole; i < count; ++i) sum += term(i);
  return sum;
}

}  // namespace tandem
