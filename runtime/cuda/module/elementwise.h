#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/cuda/module/device.h"
#include "runtime/cuda/module/launch.h"

namespace tandem {

// Kernels whose threads have nothing to do with each other. A `Body` holds typed pointers and what it needs beside, and does the
// work of `n` consecutive elements; n is Body::vector, all its pointers being aligned then, or 1.

inline constexpr int threads_of_elementwise = 256;

template <int vector, typename Body>
__global__ void elementwise_kernel(Body body, std::int64_t count) {
  const std::int64_t first = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * vector;
  if (first + vector <= count) {
    body.template at<vector>(first);
  } else {
    for (std::int64_t i = first; i < count; ++i) body.template at<1>(i);
  }
}

/// Calls body.at<n>(i) for all i below `count`.
template <typename Body>
void launch_elementwise(const char* name, const Queue& queue, std::int64_t count, bool aligned, const Body& body) {
  const int vector = aligned ? Body::vector : 1;
  const Grid grid{dim3(blocks_along_x(divide_up(count, vector * threads_of_elementwise))), dim3(threads_of_elementwise)};
  launch(name, queue, grid, aligned ? elementwise_kernel<Body::vector, Body> : elementwise_kernel<1, Body>, body, count);
}

template <int vector, typename Body>
__global__ void by_rows_kernel(Body body, std::int64_t rows, std::int64_t columns) {
  const std::int64_t row = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  const std::int64_t stride = std::int64_t{gridDim.y} * blockDim.x * vector;
  for (std::int64_t column = (std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x) * vector; column < columns; column += stride)
    body.template at<vector>(row, column);
}

/// A block's threads along a row of so many vectors, a power of two; the others take further rows.
inline unsigned threads_along_row(std::int64_t vectors) {
  unsigned threads = 1;
  while (threads < vectors && threads < threads_of_elementwise) threads *= 2;
  return threads;
}

/// Calls body.at<n>(row, column) for all rows and columns; `aligned`: all rows are.
template <typename Body>
void launch_by_rows(const char* name, const Queue& queue, std::int64_t rows, std::int64_t columns, bool aligned,
                    const Body& body) {
  constexpr std::int64_t most_blocks_along_y = 65535;
  const int vector = aligned ? Body::vector : 1;
  const std::int64_t vectors = divide_up(columns, vector);
  const unsigned along_row = threads_along_row(vectors), along_column = threads_of_elementwise / along_row;
  const dim3 blocks(blocks_along_x(divide_up(rows, along_column)),
                    static_cast<unsigned>(std::min(divide_up(vectors, along_row), most_blocks_along_y)));
  launch(name, queue, {blocks, dim3(along_row, along_column)},
         aligned ? by_rows_kernel<Body::vector, Body> : by_rows_kernel<1, Body>, body, rows, columns);
}

}  // namespace tandem
