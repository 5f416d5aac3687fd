#pragma once

#include "runtime/cuda/module/tensor_core.h"

namespace tandem {

/// A matrix of 2-byte elements in shared memory, `width` (a multiple of 64) to the row. The 16-byte chunks of a row lie swapped
/// by the row's number, so that the 8 rows of a tensor-core tile lie in different banks.
template <typename Element, int width>
struct SharedTile {
  static constexpr int chunk = 8, chunks = width / chunk;
  static_assert(sizeof(Element) == 2 && width % 64 == 0);
  Element* data;

  TANDEM_DEVICE Element* at_chunk(int row, int index) const { return data + row * width + (index ^ (row % 8)) * chunk; }
  TANDEM_DEVICE Element* at(int row, int column) const { return at_chunk(row, column / chunk) + column % chunk; }

  // Rows and columns of fragments are multiples of 8 and of 16.

  /// Loads the operand A [16,16] from `row` and `column` on.
  TANDEM_DEVICE void load_a(unsigned (&a)[4], int row, int column, int lane) const {
    load_tiles(a, at_fragment(row, lane % 16, column, lane / 16));
  }
  /// Loads the operand A [16,16] whose columns are rows here.
  TANDEM_DEVICE void load_a_by_columns(unsigned (&a)[4], int row, int column, int lane) const {
    load_tiles_transposed(a, at_fragment(row, lane / 16 * 8 + lane % 8, column, lane / 8 % 2));
  }
  /// Loads B [16,16], two of the operand, whose columns are rows here.
  TANDEM_DEVICE void load_b(unsigned (&b)[4], int row, int column, int lane) const {
    load_tiles(b, at_fragment(row, lane / 16 * 8 + lane % 8, column, lane / 8 % 2));
  }
  /// Loads B [16,16], two of the operand, whose rows are rows here.
  TANDEM_DEVICE void load_b_by_rows(unsigned (&b)[4], int row, int column, int lane) const {
    load_tiles_transposed(b, at_fragment(row, lane % 16, column, lane / 16));
  }

 private:
  /// at_chunk(row + lane_row, column / chunk + lane_chunk), so that all but four different terms are known to the compiler.
  TANDEM_DEVICE Element* at_fragment(int row, int lane_row, int column, int lane_chunk) const {
    const int index = column / chunk, of_lane = lane_chunk ^ (lane_row % 8);
    return data + (row + lane_row) * width + (index / 8 * 8 + (index % 8 ^ of_lane)) * chunk;
  }
};

/// Rows of `width` elements in global memory, `stride` elements apart, of which `count` exist. `width` is a multiple of 8, and
/// all is aligned to 16 bytes.
template <typename Element>
struct GlobalRows {
  Element* first;
  std::int64_t stride;
  int width, count;
};

/// Begins to copy; rows that do not exist become zeros. All threads of the block call it.
template <int rows, int threads, typename Element, int width>
TANDEM_DEVICE void copy_rows_async(SharedTile<Element, width> to, GlobalRows<const Element> from) {
  constexpr int chunks = SharedTile<Element, width>::chunks, chunk = SharedTile<Element, width>::chunk;
#pragma unroll 1  // registers are scarcer than instructions
  for (int i = static_cast<int>(threadIdx.x); i < rows * chunks; i += threads) {
    const int row = i / chunks, index = i % chunks;
    if (row < from.count && index * chunk < from.width) {
      copy_async(to.at_chunk(row, index), from.first + row * from.stride + index * chunk);
    } else {
      alignas(16) constexpr float zeros[4] = {};
      copy_aligned<16>(to.at_chunk(row, index), zeros);
    }
  }
}

/// Replaces elements of `c`, a warp's results, by `value` where `hidden(row, column)`; rows and columns count from the first of
/// c.
template <int m_tiles, int n_tiles, typename Hidden>
TANDEM_DEVICE void replace_where(float (&c)[m_tiles][n_tiles][4], float value, int lane, Hidden hidden) {
#pragma unroll
  for (int m = 0; m < m_tiles; ++m)
#pragma unroll
    for (int n = 0; n < n_tiles; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (hidden(m * 16 + row_of_element(lane, i), n * 8 + column_of_element(lane, i))) c[m][n][i] = value;
}

/// c += A B^T for A the warp's 16 m_tiles rows from `row` on of one tile, B the 8 n_tiles first rows of another.
template <int m_tiles, int n_tiles, typename Element, int width>
TANDEM_DEVICE void add_product(float (&c)[m_tiles][n_tiles][4], SharedTile<Element, width> a, int row,
                               SharedTile<Element, width> b, int lane) {
#pragma unroll
  for (int k = 0; k < width; k += 16) {
    unsigned of_a[m_tiles][4];
#pragma unroll
    for (int m = 0; m < m_tiles; ++m) a.load_a(of_a[m], row + m * 16, k, lane);
#pragma unroll
    for (int n = 0; n < n_tiles; n += 2) {
      unsigned of_b[4];
      b.load_b(of_b, n * 8, k, lane);
#pragma unroll
      for (int m = 0; m < m_tiles; ++m) {
        add_tile_product<Element>(c[m][n], of_a[m], of_b[0], of_b[1]);
        add_tile_product<Element>(c[m][n + 1], of_a[m], of_b[2], of_b[3]);
      }
    }
  }
}

/// c += A B for A the results of an earlier product, rounded, and B the 8 k_tiles first rows of a tile.
template <int m_tiles, int n_tiles, int k_tiles, typename Element, int width>
TANDEM_DEVICE void add_product(float (&c)[m_tiles][n_tiles][4], const float (&a)[m_tiles][k_tiles][4],
                               SharedTile<Element, width> b, int lane) {
  static_assert(n_tiles * 8 == width);
#pragma unroll
  for (int k = 0; k < k_tiles; k += 2) {
    unsigned of_a[m_tiles][4];
#pragma unroll
    for (int m = 0; m < m_tiles; ++m)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float(&tile)[4] = a[m][k + i / 2];
        of_a[m][i] = pack<Element>(tile[i % 2 * 2], tile[i % 2 * 2 + 1]);
      }
#pragma unroll
    for (int n = 0; n < n_tiles; n += 2) {
      unsigned of_b[4];
      b.load_b_by_rows(of_b, k * 8, n * 8, lane);
#pragma unroll
      for (int m = 0; m < m_tiles; ++m) {
        add_tile_product<Element>(c[m][n], of_a[m], of_b[0], of_b[1]);
        add_tile_product<Element>(c[m][n + 1], of_a[m], of_b[2], of_b[3]);
      }
    }
  }
}

/// c += A^T B for 16 m_tiles columns of A from `column` on and 16 of B from `b_column` on, each with so many rows.
template <int rows, int m_tiles, typename Element, int width, int b_width>
TANDEM_DEVICE void add_product_of_columns(float (&c)[m_tiles][2][4], SharedTile<Element, width> a, int column,
                                          SharedTile<Element, b_width> b, int b_column, int lane) {
#pragma unroll
  for (int k = 0; k < rows; k += 16) {
    unsigned of_a[m_tiles][4], of_b[4];
#pragma unroll
    for (int m = 0; m < m_tiles; ++m) a.load_a_by_columns(of_a[m], k, column + m * 16, lane);
    b.load_b_by_rows(of_b, k, b_column, lane);
#pragma unroll
    for (int m = 0; m < m_tiles; ++m) {
      add_tile_product<Element>(c[m][0], of_a[m], of_b[0], of_b[1]);
      add_tile_product<Element>(c[m][1], of_a[m], of_b[2], of_b[3]);
    }
  }
}

/// Writes the warp's results, rounded, to the rows of `tile` from `row` on.
template <int m_tiles, int n_tiles, typename Element, int width>
TANDEM_DEVICE void put_rows(SharedTile<Element, width> tile, int row, const float (&c)[m_tiles][n_tiles][4], int lane) {
  static_assert(n_tiles * 8 <= width);
#pragma unroll
  for (int m = 0; m < m_tiles; ++m)
#pragma unroll
    for (int n = 0; n < n_tiles; ++n)
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
        const unsigned pair = pack<Element>(c[m][n][i], c[m][n][i + 1]);
        copy_aligned<4>(tile.at(row + m * 16 + row_of_element(lane, i), n * 8 + column_of_element(lane, i)), &pair);
      }
}

/// Writes the warp's rows to global memory by way of its rows of `tile`, from `row` on, which no other warp uses any more.
template <int m_tiles, int n_tiles, typename Element, int width>
TANDEM_DEVICE void store_rows(SharedTile<Element, width> tile, int row, const float (&c)[m_tiles][n_tiles][4],
                              GlobalRows<Element> to, int lane) {
  constexpr int chunk = SharedTile<Element, width>::chunk, chunks = n_tiles, rows = 16 * m_tiles;
  put_rows(tile, row, c, lane);
  __syncwarp();
  for (int i = lane; i < rows * chunks; i += lanes_of_warp) {
    const int r = row + i / chunks, index = i % chunks;
    if (r < to.count && index * chunk < to.width)
      copy_aligned<16>(to.first + r * to.stride + index * chunk, tile.at_chunk(r, index));
  }
}

}  // namespace tandem
