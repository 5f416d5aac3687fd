#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

/// activation: x; y [s,b,f], by ActivationAttributes:
///   swiglu   x [s,b,2f], a row being the f gates, then the f values: y = gate sigmoid(gate) value  (Shazeer 2020, eq. 6)
///   gelu     x [s,b,f]: y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))   (Hendrycks & Gimpel 2016, section 2; as in GPT)
///   geglu    x as for swiglu: y = gelu(gate) value
///   squared_relu   x [s,b,f]: y = max(x, 0)^2
///   silu     x [s,b,f]: y = x sigmoid(x)
///   quick_geglu   x as for swiglu: y = gate sigmoid(1.702 gate) value   (GptOssExperts of transformers)
/// With a `limit` c, gated ones take min(gate, c) and min(max(value, -c), c) in place of gate and value, and no gradient where
/// these differ; `offset` is added to the value.
CostFunction activation_cost;
HostKernel activation_host;

/// activation_backward: x, dy; dx
CostFunction activation_backward_cost;
HostKernel activation_backward_host;

/// weighted_activation: x, weights [s,b,1]; y. The activation, each row times its weight: an expert's rows times their gates.
CostFunction weighted_activation_cost;
HostKernel weighted_activation_host;

/// weighted_activation_backward: x, weights, dy; dx, dweights [s,b,1]. The gradient of a row's weight is the product of dy's row
/// with the row of the activation, which is computed again.
CostFunction weighted_activation_backward_cost;
HostKernel weighted_activation_backward_host;

}  // namespace tandem
