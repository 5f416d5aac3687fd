#include "scenarios/mesh/positions.h"

#include <algorithm>

namespace tandem::scenarios {

Positions share_of_positions(std::int64_t length, bool zigzag, std::int64_t rank, std::int64_t ranks) {
  const std::int64_t chunk = length / (zigzag ? 2 * ranks : ranks);
  const auto of_chunk = static_cast<std::int32_t>(chunk);
  const auto start = [&](std::int64_t index) { return static_cast<std::int32_t>(index * chunk); };
  if (!zigzag) return {.start = {start(rank), 0}, .length = {of_chunk, 0}};
  return {.start = {start(rank), start(2 * ranks - 1 - rank)}, .length = {of_chunk, of_chunk}};
}

Positions positions_of(const Scenario& scenario, std::int64_t cp_rank) {
  const ParallelismSpec& p = scenario.parallelism;
  return share_of_positions(scenario.training.sequence, p.has_zigzag_chunks(), cp_rank, p.cp);
}

Positions moved(const Positions& positions, std::int64_t by) {
  Positions result = positions;
  for (std::size_t i = 0; i < result.start.size(); ++i)
    if (result.length[i] > 0) result.start[i] += static_cast<std::int32_t>(by);
  return result;
}

Positions positions_among(const Positions& positions, std::int64_t first, std::int64_t count) {
  const auto begin = static_cast<std::int32_t>(first), length = static_cast<std::int32_t>(count);
  const std::int32_t first_run = positions.length[0];
  if (begin >= first_run) return {.start = {positions.start[1] + begin - first_run, 0}, .length = {length, 0}};
  const std::int32_t in_first = std::min(length, first_run - begin);
  return {.start = {positions.start[0] + begin, positions.start[1]}, .length = {in_first, length - in_first}};
}

Positions whole_run(std::int64_t length) { return {.start = {0, 0}, .length = {static_cast<std::int32_t>(length), 0}}; }

}  // namespace tandem::scenarios
