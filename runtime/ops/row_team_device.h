#pragma once

#include <cstdint>

#include "runtime/cuda/module/launch.h"
#include "runtime/cuda/module/operands.h"

namespace tandem {

// Kernels that sum along rows, then use the elements again. A team of threads takes a row: some lanes of a warp where rows are
// short, a block where they are long. A block is threadIdx.x of a team, threadIdx.y of the teams. Rows that are made of whole
// vectors, few enough, stay in the team's registers, all their loads under way at once; others are read anew each time.

/// `chunks` vectors by a thread, held in registers; none: rows are read anew.
template <int vector_elements, int chunk_count>
struct RowShape {
  static constexpr int vector = vector_elements, chunks = chunk_count;
};

inline constexpr int most_threads_of_team = 512, threads_of_teams = 256;

struct RowTeams {
  unsigned threads, teams;  ///< of a row, of a block

  RowTeams(std::int64_t vectors, int chunks) {
    const auto wanted = static_cast<unsigned>(std::clamp<std::int64_t>(divide_up(vectors, chunks), 1, most_threads_of_team));
    threads = 1;
    while (threads < wanted && threads < lanes_of_warp) threads *= 2;
    if (wanted > lanes_of_warp) threads = static_cast<unsigned>(divide_up(wanted, lanes_of_warp)) * lanes_of_warp;
    teams = threads > lanes_of_warp ? 1 : threads_of_teams / threads;
  }
  dim3 block() const { return {threads, teams}; }
  unsigned blocks(std::int64_t rows) const { return blocks_along_x(divide_up(rows, std::int64_t{teams})); }
};

/// Calls visit(RowShape<vector, chunks>{}, teams) for rows of so many elements; `aligned`: all of them begin so for vectors.
template <typename Element, typename Visit>
void with_row_teams(std::int64_t width, bool aligned, Visit visit) {
  constexpr int vector = vector_of<Element>;
  const std::int64_t vectors = width / vector;
  if (!aligned || width % vector != 0 || vectors > std::int64_t{4} * most_threads_of_team)
    return visit(RowShape<1, 0>{}, RowTeams(width, 4));
  if (vectors <= lanes_of_warp) return visit(RowShape<vector, 1>{}, RowTeams(vectors, 1));
  if (vectors <= 2 * lanes_of_warp || (vectors > 4 * lanes_of_warp && vectors <= 8 * lanes_of_warp))
    return visit(RowShape<vector, 2>{}, RowTeams(vectors, 2));
  visit(RowShape<vector, 4>{}, RowTeams(vectors, 4));
}

/// The row of the team, or, in a loop with the second, those that it takes.
TANDEM_DEVICE std::int64_t row_of_team() { return std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y; }

/// Calls visit(column, chunk) for each of the thread's vectors of a row.
template <typename Shape, typename Visit>
TANDEM_DEVICE void each_vector(int width, Visit visit) {
  if constexpr (Shape::chunks > 0) {
#pragma unroll
    for (int chunk = 0; chunk < Shape::chunks; ++chunk) {
      const int column = (chunk * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)) * Shape::vector;
      if (column < width) visit(column, chunk);
    }
  } else {
    for (int column = static_cast<int>(threadIdx.x) * Shape::vector; column < width;
         column += static_cast<int>(blockDim.x) * Shape::vector)
      visit(column, 0);
  }
}

/// A thread's vectors of a row.
template <typename Element, typename Shape>
struct HeldRow {
  static constexpr int held = Shape::chunks > 0 ? Shape::chunks : 1;
  alignas(widest_access) Element raw[held][Shape::vector];
  const Element* row = nullptr;

  TANDEM_DEVICE void load(const Element* from, int width) {
    row = from;
    if constexpr (Shape::chunks > 0)
      each_vector<Shape>(width, [&](int column, int chunk) {
        copy_aligned<Shape::vector* static_cast<int>(sizeof(Element))>(raw[chunk], from + column);
      });
  }
  TANDEM_DEVICE void get(int column, int chunk, float (&values)[Shape::vector]) const {
    if constexpr (Shape::chunks > 0) {
#pragma unroll
      for (int i = 0; i < Shape::vector; ++i) values[i] = to_float(raw[chunk][i]);
    } else {
      tandem::load(row + column, values);
    }
  }
};

/// Sums each value over the team, always in the same order. All threads of the block call it and get the sums of their team.
template <int count>
TANDEM_DEVICE void team_sums(float (&values)[count]) {
  if (blockDim.x > lanes_of_warp) return block_sums(values);
#pragma unroll
  for (int i = 0; i < count; ++i)
    for (int lanes = static_cast<int>(blockDim.x) / 2; lanes > 0; lanes /= 2)
      values[i] += __shfl_xor_sync(every_lane, values[i], lanes);
}

TANDEM_DEVICE float team_sum(float value) {
  float values[1] = {value};
  team_sums(values);
  return values[0];
}

}  // namespace tandem
