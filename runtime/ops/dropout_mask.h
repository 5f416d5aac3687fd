#pragma once

#include <cstdint>

#include "runtime/base/hash.h"

namespace tandem {

/// Which elements dropout keeps: a hash of the stream, the number of the sequence in the global batch, the head, the row's
/// position in the sequence and the column in the unsharded tensor, so that any rank draws any part of the mask alone and draws
/// it again when it recomputes. For a host and a device kernel.
struct DropoutMask {
  bool by_heads = false;  ///< [b,H,rows,columns]; else [rows,b,columns]
  std::uint32_t rows = 1, batch = 1, heads = 1;
  std::int32_t start[2] = {}, first_run = 0, first_head = 0;
  std::uint64_t key = 0;
  std::uint32_t dropped = 0;  ///< of 2^32, a multiple of 2^16: the probability to the next 1/65536
  float factor = 1;           ///< of what is kept: 1 / (1 - probability)

  /// The key of a row of the tensor, whose leading dimensions are flattened. `sequences`: the numbers of the micro-batch's.
  TANDEM_HOST_DEVICE std::uint64_t of_row(std::uint32_t row, const std::int32_t* sequences) const {
    const std::uint32_t outer = row / (by_heads ? rows : batch), inner = row - outer * (by_heads ? rows : batch);
    const std::uint32_t element = by_heads ? outer / heads : inner, local = by_heads ? inner : outer;
    const std::uint32_t head = by_heads ? static_cast<std::uint32_t>(first_head) + outer - element * heads : 0;
    const auto in_runs = static_cast<std::int32_t>(local);
    const std::int32_t position = in_runs < first_run ? start[0] + in_runs : start[1] + in_runs - first_run;
    return hash_of_place(hash(key ^ static_cast<std::uint64_t>(sequences[element])), head, position);
  }
  /// Four neighbouring columns share a hash, of which each has 16 bits: columns 4 four to 4 four + 3. A GPU draws as fast as it
  /// writes then, and not with a hash for each.
  TANDEM_HOST_DEVICE std::uint64_t of_four(std::uint64_t of_row, std::uint32_t four) const { return hash(of_row ^ four); }
  TANDEM_HOST_DEVICE bool keeps_of(std::uint64_t of_four, int which) const {
    const auto word = static_cast<std::uint32_t>(which < 2 ? of_four : of_four >> 32U);
    return (which % 2 == 0 ? word << 16U : word) >= dropped;  // the lower half decides nothing, as that of `dropped` is 0
  }
  TANDEM_HOST_DEVICE bool keeps(std::uint64_t of_row, std::int64_t column) const {
    return keeps_of(of_four(of_row, static_cast<std::uint32_t>(column / 4)), static_cast<int>(column % 4));
  }
};

}  // namespace tandem
