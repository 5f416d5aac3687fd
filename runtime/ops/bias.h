#pragma once

#include <vector>

#include "runtime/ops/operation.h"

namespace tandem {

/// add_bias: bias [n,1]; x [..,n], updated. Adds the bias to every row. By GroupedGemmAttributes, bias [experts * n, 1] has one
/// for each expert, and x that expert's `rows`, one after the other.
CostFunction add_bias_cost;
HostKernel add_bias_host;

/// bias_gradient: dy [..,n]; dbias [n,1], updated. Adds the sum of all rows; of each expert's to its bias, as above.
CostFunction bias_gradient_cost;
HostKernel bias_gradient_host;

/// Rows that have one bias: their first, how many, and the first element of the bias.
struct BiasedRows {
  std::int64_t first = 0, rows = 0, bias = 0;
};
/// Throws std::logic_error for shapes that break the rule.
std::vector<BiasedRows> biased_rows(const Shape& bias, const Shape& x, const OpAttributes& attributes);

}  // namespace tandem
