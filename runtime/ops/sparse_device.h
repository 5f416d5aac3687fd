#pragma once

#include "runtime/cuda/module/device.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/sparse_sizes.h"

namespace tandem {

// The device kernels of attention to chosen keys, and of the indexer, run steps for real; they are not tuned: warps multiply
// number by number.

/// Positions of one run or two, on a GPU.
struct DevicePositions {
  std::int32_t first, length, second;

  explicit DevicePositions(const Positions& positions)
      : first(positions.start[0]), length(positions.length[0]), second(positions.start[1]) {}
  TANDEM_DEVICE std::int32_t at(std::int64_t i) const {
    const auto place = static_cast<std::int32_t>(i);
    return place < length ? first + place : second + place - length;
  }
};

/// SparseSizes on a GPU, with the places of rows.
struct DeviceSparse {
  std::int64_t queries, keys, batch, heads, width, most;
  DevicePositions query_positions, key_positions;
  bool all_keys;
  std::int32_t ratio;

  DeviceSparse(const SparseSizes& n, const SparseAttentionAttributes& attributes)
      : queries(n.queries),
        keys(n.keys),
        batch(n.micro_batch),
        heads(n.heads),
        width(n.width),
        most(n.most),
        query_positions(attributes.queries),
        key_positions(attributes.keys),
        all_keys(attributes.all_keys),
        ratio(attributes.ratio) {}

  TANDEM_DEVICE std::int64_t query_row(std::int64_t b, std::int64_t query, std::int64_t head) const {
    return ((query * batch + b) * heads + head) * width;
  }
  TANDEM_DEVICE std::int64_t key_row(std::int64_t b, std::int64_t key) const { return (key * batch + b) * width; }
  TANDEM_DEVICE bool sees(std::int64_t query, std::int64_t key) const {
    return (key_positions.at(key) + 1) * ratio <= query_positions.at(query) + 1;
  }
  /// Keys that a query learns from, in its row of a target; `key_at` has -1 for a place without one.
  TANDEM_DEVICE std::int64_t places() const { return all_keys ? keys : most; }
  TANDEM_DEVICE std::int32_t key_at(const std::int32_t* chosen, std::int64_t b, std::int64_t query, std::int64_t place) const {
    if (all_keys) return sees(query, place) ? static_cast<std::int32_t>(place) : -1;
    return chosen[(b * queries + query) * most + place];
  }
  /// Where the key stands in the row of a query that chose it, or -1. Keys ascend, then comes -1.
  TANDEM_DEVICE std::int64_t place_of(const std::int32_t* chosen, std::int64_t b, std::int64_t query, std::int64_t key) const {
    if (all_keys) return sees(query, key) ? key : -1;
    const std::int32_t* const row = chosen + (b * queries + query) * most;
    std::int64_t low = 0, high = most;
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      if (row[middle] < 0 || row[middle] >= key)
        high = middle;
      else
        low = middle + 1;
    }
    return low < most && row[low] == key ? low : -1;
  }
};

inline constexpr int threads_of_sparse = 128, warps_of_sparse = threads_of_sparse / lanes_of_warp;
/// Elements of a row that each lane holds at most.
inline constexpr int row_parts = 32;
inline constexpr std::int64_t widest_row = row_parts * lanes_of_warp;

/// To all lanes.
template <typename A, typename B>
TANDEM_DEVICE float warp_product(const A* a, const B* b, std::int64_t width) {
  float sum = 0;
  for (std::int64_t i = threadIdx.x % lanes_of_warp; i < width; i += lanes_of_warp) sum += to_float(a[i]) * to_float(b[i]);
  return warp_sum(sum);
}

template <typename A, typename B>
TANDEM_DEVICE float product_of_thread(const A* a, const B* b, std::int64_t width) {
  float sum = 0;
  for (std::int64_t i = 0; i < width; ++i) sum += to_float(a[i]) * to_float(b[i]);
  return sum;
}

/// sums += factor * row, of which each lane holds its elements.
template <typename Element>
TANDEM_DEVICE void add_row(float (&sums)[row_parts], float factor, const Element* row, std::int64_t width) {
  const int lane = static_cast<int>(threadIdx.x) % lanes_of_warp;
  for (int part = 0; part < row_parts; ++part)
    if (const std::int64_t i = part * lanes_of_warp + lane; i < width) sums[part] += factor * to_float(row[i]);
}

template <typename Element>
TANDEM_DEVICE void store_row(Element* row, const float (&sums)[row_parts], float factor, std::int64_t width) {
  const int lane = static_cast<int>(threadIdx.x) % lanes_of_warp;
  for (int part = 0; part < row_parts; ++part)
    if (const std::int64_t i = part * lanes_of_warp + lane; i < width) row[i] = from_float<Element>(factor * sums[part]);
}

/// Writes the sum over the warps of a block, in their order. `shared`: a row for each warp.
template <typename Element>
TANDEM_DEVICE void store_sum_of_warps(Element* row, const float (&sums)[row_parts], std::int64_t width, float* shared) {
  store_row(shared + threadIdx.x / lanes_of_warp * width, sums, 1.0F, width);
  __syncthreads();
  for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    float sum = 0;
    for (int warp = 0; warp < warps_of_sparse; ++warp) sum += shared[warp * width + i];
    row[i] = from_float<Element>(sum);
  }
}

}  // namespace tandem
