#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

/// cast: x; y, ... The same elements in another type, once for each y: the GEMMs of fp8 read an operand by rows in one product
/// and by columns in another, and their layout is fixed, so that both are written. Host tensors are fp32 whatever their type:
/// nothing is rounded.
CostFunction cast_cost;
HostKernel cast_host;

}  // namespace tandem
