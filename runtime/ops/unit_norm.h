#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

/// unit_norm: x [..,h]; y [..,h]. RMSNorm of each row without weights, by NormAttributes::epsilon: y = x / sqrt(mean(x^2) +
/// epsilon) (queries and keys of Llama 4, queries of DeepSeek-V4).
CostFunction unit_norm_cost;
HostKernel unit_norm_host;

/// unit_norm_backward: x, dy; dx. With r = 1 / sqrt(...) and n = x r: dx = r (dy - n mean(dy n)).
CostFunction unit_norm_backward_cost;
HostKernel unit_norm_backward_host;

}  // namespace tandem
