#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

/// embedding: ids [s,b] int32, table [V,h]; out [s,b,h]. Row i of out is the table's row for ids[i]; EmbeddingAttributes names
/// the first token of the table's rows, and a token outside of them gives zeros, so that the shards' results add up to the whole.
CostFunction embedding_cost;
HostKernel embedding_host;

/// embedding_backward: ids, dout; dtable [V,h], updated. Each row of dout is added to its token's row of dtable.
CostFunction embedding_backward_cost;
HostKernel embedding_backward_host;

// Bytes: of the table, the rows that can be touched: one per token, and at most all.

}  // namespace tandem
