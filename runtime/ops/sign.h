#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

// One-bit compression with error feedback: of every element the sign travels, of each part of a tensor the mean magnitude
// (Seide et al. 2014; Karimireddy et al. 2019, arXiv 1901.09847, for the scale; Tang et al. 2021, arXiv 2102.02888, for the
// exchange in two rounds that scenarios/lowering/compress_one_bit.cpp makes of it).
//
// Signs [p, b] (uint8) hold p parts of 8 b elements each: bit j of byte i is that of element 8 i + j, 1 for what is not negative.

/// sign_compress: x [n]; signs [p, b], scales [p] (fp32), residual [n], updated. Adds x to the residual and takes out of it what
/// travels: scale * sign, with the mean magnitude of the part's elements as scale. Elements from SignAttributes::valid on are
/// padding: they count in no mean, and their residual is 0. Parts need not be full; one without elements has the scale 0.
///
/// Bytes: x and the residual are read twice, for the means and for the signs.
CostFunction sign_compress_cost;
HostKernel sign_compress_host;

/// sign_sum: signs [p, b], scales [p]; y [8 b]. y = sum over the parts of scale * sign, in their order.
CostFunction sign_sum_cost;
HostKernel sign_sum_host;

/// sign_expand: signs [p, b], scales [p]; y [n], n <= 8 p b. y = scale * sign, part after part.
CostFunction sign_expand_cost;
HostKernel sign_expand_host;

}  // namespace tandem
