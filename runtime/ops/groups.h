#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

// What an all-to-all needs before it and after it, for rows that hold one part for each of GroupsAttributes::groups members.

/// pack_groups: x [rows, groups * width]; y [groups, rows, width]. The last two dimensions of x are a row: [s,b,H,d] is packed by
/// groups of heads.
CostFunction pack_groups_cost;
HostKernel pack_groups_host;

/// unpack_groups: y; x. The inverse.
CostFunction unpack_groups_cost;
HostKernel unpack_groups_host;

}  // namespace tandem
