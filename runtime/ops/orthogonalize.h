#pragma once

#include "runtime/base/hash.h"
#include "runtime/ops/operation.h"

namespace tandem {

/// orthogonalize: ; P [n, r], updated, n >= r. The columns become orthonormal and span what they did, by Gram-Schmidt: of each
/// column, what lies in the direction of those before it is taken out, twice, as rounding leaves traces the first time ("twice is
/// enough": Giraud, Langou, Rozloznik 2005), and the rest is divided by its length. A column that is left with less than
/// `dependent_share` of its length lies among those before it but for rounding: `orthogonal_filler` stands in for it, so that P
/// keeps its rank.
///
/// Bytes: a column is read and written; for each one before it, twice, both are read for their product, and read once more where
/// the column is written: n (2 r + 5 r (r - 1)) elements.
CostFunction orthogonalize_cost;
HostKernel orthogonalize_host;

inline constexpr float dependent_share = 1e-5F;

/// In [-1, 1), by place alone.
TANDEM_HOST_DEVICE inline float orthogonal_filler(std::int64_t row, std::int64_t column) {
  return static_cast<float>(hash_of_place(0, row, column) >> 40) * 0x1p-23F - 1.0F;
}

}  // namespace tandem
