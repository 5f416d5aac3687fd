#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

/// cast: x; y, ... The same elements in another type, once for each y: the GEMMs of fp8 read an operand by rows in one product
/// and by columns in another, and their layout is fixed, so that both are written. Host tensors are fp32 whatever their type.
///
/// cast, CastAttributes::in_place: y; x, or x alone. Of a tensor that is kept in the narrow type, and read by rows as it is; its
/// transpose y is written. A host, which keeps it as it was before it was rounded, rounds it now.
///
/// Where CastAttributes::to names a narrow type, what a host writes are the numbers of that type times their scales, as
/// Transformer Engine chooses these (common/recipe/__init__.py). With a block's largest magnitude a and the type's largest number
/// L (448 of e4m3, 57344 of e5m2, 6 of e2m1), y = s round(x / s):
///
///   scaling                 block                                 s
///   tensor                  all of the tensor                     a / L
///   blocks_128 squares_128  128 along the depth, or 128 x 128     the power of two that is not below a / L
///   blocks_32               32 along the depth                    the same (OCP Microscaling Formats 1.0, section 6.3)
///   blocks_16 squares_16    16 along the depth, or 16 x 16        e g, with g = A / (6 448) of the tensor's largest magnitude A,
///                                                                 and e = a / (6 g) rounded to e4m3 (arXiv 2509.25149, app. B)
///
/// The depth of the first y is its columns, that of the second its rows. Several tensors may lie below each other
/// (CastAttributes::rows). Scales of recipes that take them from earlier steps are those that x has now. Zeros have scale 1.
///
/// round() is to nearest, ties to even; when CastAttributes::stochastic, to the number below or above with the probabilities that
/// make the mean x / s, drawn by the bits of x, the seed and the direction: any rank that holds x draws alike. When `transforms`,
/// each 16 rows of the second y are multiplied by H16 D / 4 before: Sylvester's Hadamard matrix and signs drawn once for all;
/// rows that are left over stay. As both operands of a product over rows are multiplied by the same orthogonal matrix, the
/// product is the same.
CostFunction cast_cost;
HostKernel cast_host;

}  // namespace tandem
