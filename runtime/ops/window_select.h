#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

/// window_select: in one form with `compressed` [b,s,C] (int32); chosen [b,s,K] (int32): the keys of each query where those of
/// single positions, [0, P), lie before keys that stand for `ratio` positions each, by SparseAttentionAttributes: the last
/// `window` positions up to the query's own, and behind them, by their numbers from P on, what `compressed` names, or without it
/// all compressed keys that the query sees. Ascending, then -1. P is the length of the first run of the keys' positions.
CostFunction window_select_cost;
HostKernel window_select_host;

}  // namespace tandem
