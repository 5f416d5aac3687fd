#pragma once

#include <cstdint>

#include "runtime/base/hash.h"

namespace tandem {

/// Which elements dropout keeps: a hash of the stream, the number of the sequence in the global batch, the head, the row's
/// position in the sequence and the column in the unsharded tensor, so that any rank draws any part of the mask alone and draws
/// it again when it recomputes. For a host and a device kernel.
struct DropoutMask {
  bool by_heads = false;  ///< [b,H,rows,columns]; else [rows,b,columns]
  std::int64_t rows = 1, batch = 1, heads = 1;
  std::int32_t start[2] = {}, first_run = 0, first_head = 0;
  std::uint64_t key = 0;
  std::uint32_t dropped = 0;  ///< of 2^32
  float factor = 1;           ///< of what is kept: 1 / (1 - probability)

  /// The key of a row of the tensor, whose leading dimensions are flattened. `sequences`: the numbers of the micro-batch's.
  TANDEM_HOST_DEVICE std::uint64_t of_row(std::int64_t row, const std::int32_t* sequences) const {
    const std::int64_t element = by_heads ? row / rows / heads : row % batch;
    const std::int64_t head = by_heads ? first_head + row / rows % heads : 0;
    const auto local = static_cast<std::int32_t>(by_heads ? row % rows : row / batch);
    const std::int32_t position = local < first_run ? start[0] + local : start[1] + local - first_run;
    return hash_of_place(hash(key ^ static_cast<std::uint64_t>(sequences[element])), head, position);
  }
  /// Two neighbouring columns share a hash, of which each has 32 bits: columns 2 pair and 2 pair + 1.
  TANDEM_HOST_DEVICE std::uint64_t of_pair(std::uint64_t of_row, std::int64_t pair) const {
    return hash(of_row ^ static_cast<std::uint64_t>(pair));
  }
  TANDEM_HOST_DEVICE bool keeps_first(std::uint64_t of_pair) const { return static_cast<std::uint32_t>(of_pair) >= dropped; }
  TANDEM_HOST_DEVICE bool keeps_second(std::uint64_t of_pair) const {
    return static_cast<std::uint32_t>(of_pair >> 32U) >= dropped;
  }
  TANDEM_HOST_DEVICE bool keeps(std::uint64_t of_row, std::int64_t column) const {
    const std::uint64_t bits = of_pair(of_row, column / 2);
    return column % 2 == 0 ? keeps_first(bits) : keeps_second(bits);
  }
};

}  // namespace tandem
