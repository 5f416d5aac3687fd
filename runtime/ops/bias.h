#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

/// add_bias: bias [n,1]; x [..,n], updated. Adds the bias to every row.
CostFunction add_bias_cost;
HostKernel add_bias_host;

/// bias_gradient: dy [..,n]; dbias [n,1], updated. Adds the sum of all rows.
CostFunction bias_gradient_cost;
HostKernel bias_gradient_host;

}  // namespace tandem
