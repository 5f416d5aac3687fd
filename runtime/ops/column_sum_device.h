#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/cuda/module/launch.h"
#include "runtime/cuda/module/operands.h"

namespace tandem {

// Sums over rows, column by column, in two passes: many threads first sum some rows each, which they leave as the rows of
// partial sums in scratch, then these are added up, always in one order.

/// Threads that leave partial sums: as many as a large GPU runs at once, for more keep no more of it busy.
inline constexpr std::int64_t most_summing_threads = 256 << 10;

/// How many rows of partial sums there are when one takes so many threads, and there are so many rows to sum.
inline std::int64_t partial_rows(std::int64_t rows, std::int64_t threads) {
  return std::clamp<std::int64_t>(most_summing_threads / std::max<std::int64_t>(threads, 1), 1, std::max<std::int64_t>(rows, 1));
}

// Blocks of 32 x 32 threads take 32 columns, and each 32nd row per thread along y.
inline constexpr int panel = 32;

/// The sum of `value` over threadIdx.y, to the threads with threadIdx.y = 0.
TANDEM_DEVICE float sum_of_column(float value) {
  using PanelRow = float[panel + 1];
  TANDEM_SHARED(PanelRow, values, panel);
  __syncthreads();
  values[threadIdx.y][threadIdx.x] = value;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < panel && threadIdx.y == 0; ++i) sum += values[i][threadIdx.x];
  return sum;
}

/// The sum of a column of partial [rows][columns], to the threads with threadIdx.y = 0, which have the column 32 blockIdx.x +
/// threadIdx.x. All threads of the block call it.
TANDEM_DEVICE float sum_of_rows(const float* partial, int rows, std::int64_t columns, std::int64_t column) {
  float sum = 0;
  if (column < columns) {
#pragma unroll 8
    for (int row = static_cast<int>(threadIdx.y); row < rows; row += panel) sum += partial[row * columns + column];
  }
  return sum_of_column(sum);
}

/// out [columns] += the sum of partial [rows][columns] over the rows.
template <typename Element>
__global__ void add_rows_kernel(const float* partial, int rows, std::int64_t columns, Element* out) {
  const std::int64_t column = std::int64_t{blockIdx.x} * panel + threadIdx.x;
  const float sum = sum_of_rows(partial, rows, columns, column);
  if (threadIdx.y == 0 && column < columns) out[column] = from_float<Element>(to_float(out[column]) + sum);
}

template <typename Element>
void launch_add_rows(const char* name, const Queue& queue, const float* partial, std::int64_t rows, std::int64_t columns,
                     Element* out) {
  launch(name, queue, {dim3(blocks_along_x(divide_up(columns, panel))), dim3(panel, panel)}, add_rows_kernel<Element>, partial,
         static_cast<int>(rows), columns, out);
}

}  // namespace tandem
