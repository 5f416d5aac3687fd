#pragma once

#include <cstdint>

#include "runtime/cuda/module/launch.h"
#include "runtime/cuda/module/operands.h"

namespace tandem {

// Rows that a block of threads holds in its registers; what norm.cu and norm_backward.cu share.

inline constexpr int most_threads_of_row = 512;

/// How a block shares a row of vectors: the more vectors a thread has under way, the fewer threads wait for each other.
struct RowLayout {
  int chunks, threads;

  explicit RowLayout(std::int64_t vectors) : chunks(vectors <= 128 ? 1 : vectors <= 512 ? 2 : 4) {
    threads = static_cast<int>(divide_up(divide_up(vectors, chunks), lanes_of_warp)) * lanes_of_warp;
  }
  bool fits() const { return threads <= most_threads_of_row; }
};

/// Calls `visit(Chunks<n>{})` with the layout's chunks.
template <int n>
struct Chunks {
  static constexpr int chunks = n;
};
template <typename Visit>
void with_chunks(const RowLayout& layout, Visit visit) {
  if (layout.chunks == 1) return visit(Chunks<1>{});
  if (layout.chunks == 2) return visit(Chunks<2>{});
  visit(Chunks<4>{});
}

/// What a thread holds of a row: `chunks` vectors, of which those beyond the width are no part of it.
template <typename Element, int chunks>
struct PartOfRow {
  static constexpr int vector = vector_of<Element>;
  alignas(widest_access) Element raw[chunks][vector];

  static TANDEM_DEVICE int column_of(int chunk) {
    return (chunk * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)) * vector;
  }

  TANDEM_DEVICE void load(const Element* row, int width) {
#pragma unroll
    for (int chunk = 0; chunk < chunks; ++chunk)
      if (column_of(chunk) < width) copy_aligned<widest_access>(raw[chunk], row + column_of(chunk));
  }
  TANDEM_DEVICE float at(int chunk, int i) const { return to_float(raw[chunk][i]); }
};

/// Calls visit(chunk) for those of the thread's vectors that are part of the row.
template <int vector, int chunks, typename Visit>
TANDEM_DEVICE void each_chunk(int width, Visit visit) {
#pragma unroll
  for (int chunk = 0; chunk < chunks; ++chunk)
    if ((chunk * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)) * vector < width) visit(chunk);
}

/// normalised = (x - mean) * inverse_deviation
struct RowStatistics {
  float mean, inverse_deviation;
};

/// Of a row that the block reads from memory.
template <NormKind kind, typename Element>
TANDEM_DEVICE RowStatistics statistics_of(const Element* row, std::int64_t width, float epsilon) {
  float mean = 0, squares = 0;
  if constexpr (kind == NormKind::layer) {
    float sum = 0;
    for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x) sum += to_float(row[i]);
    mean = block_sum(sum) / static_cast<float>(width);
  }
  for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x) squares += (to_float(row[i]) - mean) * (to_float(row[i]) - mean);
  return {mean, 1 / sqrtf(block_sum(squares) / static_cast<float>(width) + epsilon)};
}

template <NormKind norm_kind>
struct Kind {
  static constexpr NormKind kind = norm_kind;
};
template <typename Visit>
void with_kind(NormKind kind, Visit visit) {
  if (kind == NormKind::layer)
    visit(Kind<NormKind::layer>{});
  else
    visit(Kind<NormKind::rms>{});
}

/// Whether rows of x fill whole vectors, few enough for a block's registers, and all begin aligned.
template <typename Element>
bool stays_in_registers(std::int64_t width, std::initializer_list<DeviceTensor> tensors) {
  constexpr int vector = vector_of<Element>;
  return width % vector == 0 && RowLayout(width / vector).fits() && are_aligned(tensors, vector);
}

}  // namespace tandem
