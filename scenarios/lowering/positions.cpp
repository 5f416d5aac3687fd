#include "scenarios/lowering/positions.h"

#include <algorithm>

namespace tandem::scenarios {

Positions positions_of(const Scenario& scenario, std::int64_t cp_rank) {
  const ParallelismSpec& p = scenario.parallelism;
  const bool zigzag = p.cp > 1 && p.cp_layout == CpLayout::zigzag;
  const std::int64_t chunk = scenario.training.sequence / (zigzag ? 2 * p.cp : p.cp);
  const auto length = static_cast<std::int32_t>(chunk);
  const auto start = [&](std::int64_t index) { return static_cast<std::int32_t>(index * chunk); };
  if (!zigzag) return {.start = {start(cp_rank), 0}, .length = {length, 0}};
  return {.start = {start(cp_rank), start(2 * p.cp - 1 - cp_rank)}, .length = {length, length}};
}

Positions positions_among(const Positions& positions, std::int64_t first, std::int64_t count) {
  const auto begin = static_cast<std::int32_t>(first), length = static_cast<std::int32_t>(count);
  const std::int32_t first_run = positions.length[0];
  if (begin >= first_run) return {.start = {positions.start[1] + begin - first_run, 0}, .length = {length, 0}};
  const std::int32_t in_first = std::min(length, first_run - begin);
  return {.start = {positions.start[0] + begin, positions.start[1]}, .length = {in_first, length - in_first}};
}

Positions whole_sequence(const Scenario& scenario) {
  return {.start = {0, 0}, .length = {static_cast<std::int32_t>(scenario.training.sequence), 0}};
}

}  // namespace tandem::scenarios
