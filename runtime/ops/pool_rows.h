#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

/// pool_rows: x [n,b,h]; y [n/m,b,h]. Row i of y is the mean of the rows i m ... i m + m - 1 of x, by the sizes of both (average
/// pooling of an image's patches, each window's lying together: Gemma 3).
CostFunction pool_rows_cost;
HostKernel pool_rows_host;

/// pool_rows_backward: dy; dx. Each row of x gets 1/m of its mean's gradient.
CostFunction pool_rows_backward_cost;
HostKernel pool_rows_backward_host;

/// How many rows a mean is of. Throws std::logic_error where the shapes are none of these.
std::int64_t rows_of_mean(const Shape& x, const Shape& y);

}  // namespace tandem
