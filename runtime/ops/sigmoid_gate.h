#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

// Outputs times the sigmoid of a projection: of attention's heads (Qiu et al. 2025, arXiv 2505.06708, section 2.2; Qwen3-Next),
// or of all of a shared expert (Qwen2's mixture). Each of the g columns of z is the gate of f / g neighbouring columns of x.

/// sigmoid_gate: x [s,b,f], z [s,b,g]; y [s,b,f]. y = x sigmoid(z).
CostFunction sigmoid_gate_cost;
HostKernel sigmoid_gate_host;

/// sigmoid_gate_backward: x, z, dy; dx, dz. dx = dy sigmoid(z), dz = sigmoid(z) (1 - sigmoid(z)) times the sum of dy x over the
/// columns of its gate.
CostFunction sigmoid_gate_backward_cost;
HostKernel sigmoid_gate_backward_host;

}  // namespace tandem
