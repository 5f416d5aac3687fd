#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

// Tokens to slots and back. `slots` [T,k], int32, are route's: where each choice of a token lies among the rows sent, negative
// where it was dropped.

/// permute: x [T,h], slots; rows [R,h]. Each token into the slots of its choices, zeros into those that nobody took.
CostFunction permute_cost;
HostKernel permute_host;

/// permute_backward: drows [R,h], slots; dx [T,h]
CostFunction permute_backward_cost;
HostKernel permute_backward_host;

/// combine: rows [R,h], slots, gates [T,k]; y [T,h]. The sum of what a token's experts made of it, weighted by the gates.
CostFunction combine_cost;
HostKernel combine_host;

/// combine_backward: dy [T,h], rows [R,h], slots, gates; drows [R,h], dgates [T,k]
CostFunction combine_backward_cost;
HostKernel combine_backward_host;

/// regroup: x; y. Rows by source to rows by expert or, inverse, back with zeros as padding; see RegroupAttributes.
CostFunction regroup_cost;
HostKernel regroup_host;

}  // namespace tandem
