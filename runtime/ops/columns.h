#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

/// split_columns: x [n, a+b+...]; first [n,a], second [n,b], ... Each row is cut into consecutive runs.
CostFunction split_columns_cost;
HostKernel split_columns_host;

/// join_columns: first [n,a], second [n,b], ...; y [n, a+b+...]. The other way round, and the backward of splitting.
CostFunction join_columns_cost;
HostKernel join_columns_host;

}  // namespace tandem
