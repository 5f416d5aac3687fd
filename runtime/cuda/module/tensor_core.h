#pragma once

#include "runtime/cuda/module/device.h"

#ifdef TANDEM_EMULATED
#include "runtime/cuda/emulation/tensor_core.h"
#endif

namespace tandem {

// Warp-wide matrix instructions of compute capability 8.0 and later, on bf16 and fp16 with sums in fp32 (PTX ISA, "Matrix
// multiply- accumulate operation using mma instruction" and "ldmatrix"). All lanes of a warp call them together.
//
// C[16,8] += A[16,16] B[16,8]. With g = lane / 4 and t = lane % 4, a lane holds pairs of neighbours:
//   A: four pairs, rows g, g+8, g, g+8; columns 2t, 2t+1 in the first two, 2t+8, 2t+9 in the others
//   B: two pairs, rows 2t, 2t+1 and 2t+8, 2t+9; column g
//   C: row g, columns 2t, 2t+1; then row g+8
// so that C, rounded, is one half of the columns of an A.

/// Row within a 16 x 8 tile of C of the i-th of a lane's four elements, and column.
TANDEM_DEVICE int row_of_element(int lane, int i) { return lane / 4 + i / 2 * 8; }
TANDEM_DEVICE int column_of_element(int lane, int i) { return lane % 4 * 2 + i % 2; }

/// Two elements, rounded, in one register, the first in the lower half.
template <typename Element>
TANDEM_DEVICE unsigned pack(float first, float second) {
  unsigned packed = 0;
  const auto pair = [=] {
    if constexpr (std::is_same_v<Element, Bf16>)
      return __floats2bfloat162_rn(first, second);
    else
      return __floats2half2_rn(first, second);
  }();
  static_assert(sizeof pair == sizeof packed);
  memcpy(&packed, &pair, sizeof packed);
  return packed;
}

#ifdef TANDEM_EMULATED

template <typename Element>
void add_tile_product(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  emulation::add_tile_product<Element>(c, a, b0, b1);
}
inline void load_tiles(unsigned (&tiles)[4], const void* row) { emulation::load_tiles(tiles, row, false); }
inline void load_tiles_transposed(unsigned (&tiles)[4], const void* row) { emulation::load_tiles(tiles, row, true); }
inline float fast_exp2(float x) { return std::exp2(x); }

#else

template <typename Element>
TANDEM_DEVICE void add_tile_product(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  if constexpr (std::is_same_v<Element, Bf16>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    static_assert(std::is_same_v<Element, F16>);
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

/// Four 8 x 8 tiles from shared memory: lane 8 i + r gives the address of row r of tile i, 16 bytes; each lane gets of each tile
/// the pair at row g, columns 2t, 2t+1. Transposed: rows 2t, 2t+1, column g.
TANDEM_DEVICE void load_tiles(unsigned (&tiles)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(tiles[0]), "=r"(tiles[1]), "=r"(tiles[2]), "=r"(tiles[3])
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row)))
               : "memory");
}
TANDEM_DEVICE void load_tiles_transposed(unsigned (&tiles)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(tiles[0]), "=r"(tiles[1]), "=r"(tiles[2]), "=r"(tiles[3])
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row)))
               : "memory");
}

/// 2^x to 2 of the last bits; 0 for -infinity.
TANDEM_DEVICE float fast_exp2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

#endif

}  // namespace tandem
