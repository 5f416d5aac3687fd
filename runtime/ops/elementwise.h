#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

// Operations on operands of equally many elements, whatever their shapes.

/// add: a, b; c. c = a + b, where c may be a or b.
CostFunction add_cost;
HostKernel add_host;

/// weighted_sum: a, b; c. c = first a + second b of WeightedSumAttributes, where c may be a or b.
CostFunction weighted_sum_cost;
HostKernel weighted_sum_host;

/// fill: ; x. Every element becomes ScaleAttributes::factor.
CostFunction fill_cost;
HostKernel fill_host;

/// scale: x; y. y = ScaleAttributes::factor * x, where y may be x.
CostFunction scale_cost;
HostKernel scale_host;

/// square_sum: x; out [1], updated. out += factor * sum x^2.
CostFunction square_sum_cost;
HostKernel square_sum_host;

/// softcap: x, updated. x = c tanh(x / c), c being ScaleAttributes::factor (Gemma 2, arXiv 2408.00118, section 2).
CostFunction softcap_cost;
HostKernel softcap_host;

/// softcap_backward: y, as softcap left it; dy, updated. dy *= 1 - (y / c)^2.
CostFunction softcap_backward_cost;
HostKernel softcap_backward_host;

}  // namespace tandem
