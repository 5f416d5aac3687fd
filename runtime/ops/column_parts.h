#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

// What the all-to-alls of mixers that keep a state need, which turn parts of the sequence with all heads into the whole sequence
// with some heads (`mamba_context_parallel.py` of Megatron-Core). A row [W] is made of parts, each with a share for every rank
// (ColumnPartsAttributes); rows are those of `s` positions and a batch. A part's shares lie together, so that it travels by
// itself:
//
//   flat    for each part, for each rank, for each row: the share's columns
//
// A share has widths[i] repeats[i] / ranks columns, and rank r's begin at (r / repeats[i]) times as many.

/// pack_parts: x [s,b,W]; flat. The inverse adds up what repeated shares say of one column.
CostFunction pack_parts_cost;
HostKernel pack_parts_host;

/// order_parts: flat, of the rows of each rank in turn; y [ranks s,b,W'], rows in the order of the sequence, W' the sum of the
/// shares. `inverse` leads back.
CostFunction order_parts_cost;
HostKernel order_parts_host;

}  // namespace tandem
