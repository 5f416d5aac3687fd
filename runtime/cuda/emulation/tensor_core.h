#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "runtime/cuda/emulation/device.h"

// The warp's matrix instructions, each lane's part by the layouts of the PTX ISA.

namespace tandem::emulation {

/// A register's two elements of 16 bits.
template <typename Element>
float half_of(unsigned pair, int second) {
  return static_cast<float>(std::bit_cast<Element>(static_cast<std::uint16_t>(pair >> (16 * second))));
}

/// How often a lane has taken part in a product of tiles, for tests that count.
inline std::int64_t lanes_of_tile_products = 0;

/// mma.sync.aligned.m16n8k16.row.col.f32: https://docs.nvidia.com/cuda/parallel-thread-execution/, "Matrix Fragments for
/// mma.m16n8k16 with floating point type".
template <typename Element>
void add_tile_product(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                      std::source_location place = std::source_location::current()) {
  struct Fragments {
    unsigned a[4], b[2];
  };
  ++lanes_of_tile_products;
  const auto lanes = warp_exchange(full_warp, Fragments{{a[0], a[1], a[2], a[3]}, {b0, b1}}, place);
  const auto a_at = [&](unsigned row, unsigned k) {
    const unsigned holder = row % 8 * 4 + k % 8 / 2, pair = row / 8 + k / 8 * 2;
    return half_of<Element>(lanes[holder].a[pair], static_cast<int>(k % 2));
  };
  const auto b_at = [&](unsigned k, unsigned column) {
    const unsigned holder = column * 4 + k % 8 / 2;
    return half_of<Element>(lanes[holder].b[k / 8], static_cast<int>(k % 2));
  };
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = lane() / 4 + (i < 2 ? 0U : 8U), column = lane() % 4 * 2 + i % 2;
    for (unsigned k = 0; k < 16; ++k) c[i] += a_at(row, k) * b_at(k, column);
  }
}

/// ldmatrix.sync.aligned.m8n8.x4[.trans].shared.b16.
inline void load_tiles(unsigned (&tiles)[4], const void* row, bool transposed,
                       std::source_location place = std::source_location::current()) {
  struct Row {
    std::uint16_t elements[8];
  };
  if (std::bit_cast<std::uintptr_t>(row) % sizeof(Row) != 0) throw std::runtime_error("misaligned address");
  Row mine;
  std::memcpy(&mine, row, sizeof mine);
  const auto rows = warp_exchange(full_warp, mine, place);
  for (unsigned tile = 0; tile < 4; ++tile) {
    const auto element = [&](unsigned r, unsigned column) { return unsigned{rows[tile * 8 + r].elements[column]}; };
    const unsigned g = lane() / 4, first = lane() % 4 * 2;
    tiles[tile] =
        transposed ? element(first, g) | element(first + 1, g) << 16U : element(g, first) | element(g, first + 1) << 16U;
  }
}

}  // namespace tandem::emulation
