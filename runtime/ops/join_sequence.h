#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

/// join_sequence: parts; k [s,b,K,d], v [s,b,K,e], or k alone. `parts` is what gathering the keys and values of all
/// context-parallel ranks gives: for each rank the keys at its positions, then the values; k and v hold them in the order of the
/// sequence. The ranks' positions follow from SequenceAttributes.
CostFunction join_sequence_cost;
HostKernel join_sequence_host;

/// split_sequence: dk, and dv where there is one; parts. The inverse.
CostFunction split_sequence_cost;
HostKernel split_sequence_host;

}  // namespace tandem
