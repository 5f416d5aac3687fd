#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/cuda/module/elementwise.h"

namespace tandem {

// Like launch_by_rows of elementwise.h, for bodies that need something of a row whatever the column: body.row(row) makes it once
// for a thread, which then calls its at<n>(column) for several columns. So what a row costs (a division, a root, a hash) is
// shared by all elements that a thread takes of it. A row with Loaded<n>, load<n>(column, loaded) and store<n>(column, loaded)
// instead has all loads of a thread under way at once: no compiler moves a load before an earlier vector's store.

inline constexpr int vectors_of_walk = 4;  ///< of a row, by a thread

template <typename Row, int vector>
concept LoadsAhead = requires {
  typename Row::template Loaded<vector>;
};

template <int vector, typename Body>
__global__ void __launch_bounds__(threads_of_elementwise) walk_rows_kernel(Body body, std::int64_t rows, std::int64_t columns) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  const auto of_row = body.row(row);
  const std::int64_t stride = std::int64_t{gridDim.y} * blockDim.x * vector;
  std::int64_t column = (std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x) * vector;
  if constexpr (LoadsAhead<decltype(body.row(row)), vector>) {
    for (; column < columns; column += vectors_of_walk * stride) {
      typename decltype(body.row(row))::template Loaded<vector> loaded[vectors_of_walk];
#pragma unroll
      for (int i = 0; i < vectors_of_walk; ++i)
        if (column + i * stride < columns) of_row.template load<vector>(column + i * stride, loaded[i]);
#pragma unroll
      for (int i = 0; i < vectors_of_walk; ++i)
        if (column + i * stride < columns) of_row.template store<vector>(column + i * stride, loaded[i]);
    }
  } else {
    for (; column < columns; column += stride) of_row.template at<vector>(column);
  }
}

/// Calls body.row(row).at<n>(column) for all rows and columns, n being Body::vector where `aligned`: all rows are.
template <typename Body>
void launch_row_walk(const char* name, const Queue& queue, std::int64_t rows, std::int64_t columns, bool aligned,
                     const Body& body) {
  constexpr std::int64_t most_blocks_along_y = 65535;
  const int vector = aligned ? Body::vector : 1;
  const std::int64_t vectors = divide_up(columns, vector);
  const unsigned along_row = threads_along_row(vectors), along_column = threads_of_elementwise / along_row;
  const std::int64_t blocks_of_row = divide_up(vectors, std::int64_t{along_row} * vectors_of_walk);
  const dim3 blocks(blocks_along_x(divide_up(rows, along_column)),
                    static_cast<unsigned>(std::min(blocks_of_row, most_blocks_along_y)));
  launch(name, queue, {blocks, dim3(along_row, along_column)},
         aligned ? walk_rows_kernel<Body::vector, Body> : walk_rows_kernel<1, Body>, body, rows, columns);
}

}  // namespace tandem
