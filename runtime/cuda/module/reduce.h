#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/cuda/module/device.h"
#include "runtime/cuda/module/launch.h"

namespace tandem {

// Reductions of many elements to one number, in two passes with partial results in scratch: always the same partial results in
// the same order.

inline constexpr int most_partial_results = 1024;
inline constexpr int threads_of_reduction = 256;
inline constexpr std::size_t reduction_scratch_bytes = most_partial_results * sizeof(float);

struct Sum {
  static constexpr bool from_end = false;  ///< rounding would be another
  static TANDEM_DEVICE float of(float a, float b) { return a + b; }
  static TANDEM_DEVICE float of_block(float value) { return block_sum(value); }
};

/// The largest of numbers that are not negative: the same in any order. They are read from the end to the beginning, so that the
/// L2 cache still has the beginning for the kernel that reads them next.
struct Maximum {
  static constexpr bool from_end = true;
  static TANDEM_DEVICE float of(float a, float b) { return fmaxf(a, b); }
  static TANDEM_DEVICE float of_block(float value) { return block_max(value); }
};

template <int vector, typename Body>
__global__ void partial_results_kernel(Body body, std::int64_t count, float* partial) {
  using Join = typename Body::Join;
  float lanes[vector] = {}, rest[1] = {};  // independent results, as each element of a long sum costs exactness
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x * vector;
  const std::int64_t last = count / vector * vector - vector;
  std::int64_t i = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * vector;
#pragma unroll 4
  for (; i + vector <= count; i += stride) body.template add<vector>(Join::from_end ? last - i : i, lanes);
  for (; i < count; ++i) body.template add<1>(i, rest);
  float result = rest[0];
  for (int lane = 0; lane < vector; ++lane) result = Join::of(result, lanes[lane]);
  result = Join::of_block(result);
  if (threadIdx.x == 0) partial[blockIdx.x] = result;
}

/// Returns the result from the partial ones, to all threads of one block.
template <typename Join>
TANDEM_DEVICE float joined_results(const float* partial, int count) {
  float result = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x)) result = Join::of(result, partial[i]);
  return Join::of_block(result);
}

/// Joins what body.add<n>(i, lanes) adds to the n `lanes` for all i below `count` by Body::Join into partial results in
/// scratch, and returns how many. A kernel of one block of threads_of_reduction joins them. Needs reduction_scratch_bytes.
template <typename Body>
int launch_partial_results(const char* name, const Queue& queue, std::int64_t count, bool aligned, const Body& body) {
  const int vector = aligned ? Body::vector : 1;
  const std::int64_t blocks = divide_up(count, vector * threads_of_reduction);
  const auto partial_results = static_cast<int>(std::clamp<std::int64_t>(blocks, 1, most_partial_results));
  launch(name, queue, {dim3(static_cast<unsigned>(partial_results)), dim3(threads_of_reduction)},
         aligned ? partial_results_kernel<Body::vector, Body> : partial_results_kernel<1, Body>, body, count,
         static_cast<float*>(queue.scratch));
  return partial_results;
}

template <bool adds>
__global__ void finish_sum_kernel(const float* partial, int count, float factor, float* out) {
  const float sum = joined_results<Sum>(partial, count);
  if (threadIdx.x == 0) *out = (adds ? *out : 0.0F) + factor * sum;
}

/// Writes out = factor * sum, or adds that to out.
template <bool adds, typename Body>
void launch_sum(const char* name, const Queue& queue, std::int64_t count, bool aligned, const Body& body, float factor,
                float* out) {
  const int partial_sums = launch_partial_results(name, queue, count, aligned, body);
  launch(name, queue, {dim3(1), dim3(threads_of_reduction)}, finish_sum_kernel<adds>, static_cast<const float*>(queue.scratch),
         partial_sums, factor, out);
}

}  // namespace tandem
