#include "scenarios/lowering/positions.h"

#include <algorithm>

namespace tandem::scenarios {

namespace {

/// Of one of so many equal shares of a sequence.
Positions share_of_sequence(const Scenario& scenario, std::int64_t share, std::int64_t shares) {
  const bool zigzag = scenario.parallelism.has_zigzag_chunks();
  const std::int64_t chunk = scenario.training.sequence / (zigzag ? 2 * shares : shares);
  const auto length = static_cast<std::int32_t>(chunk);
  const auto start = [&](std::int64_t index) { return static_cast<std::int32_t>(index * chunk); };
  if (!zigzag) return {.start = {start(share), 0}, .length = {length, 0}};
  return {.start = {start(share), start(2 * shares - 1 - share)}, .length = {length, length}};
}

}  // namespace

Positions positions_of(const Scenario& scenario, std::int64_t cp_rank) {
  return share_of_sequence(scenario, cp_rank, scenario.parallelism.cp);
}

Positions ring_positions(const Scenario& scenario, std::int64_t ring_rank) {
  return share_of_sequence(scenario, ring_rank, scenario.parallelism.ring_ranks());
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
