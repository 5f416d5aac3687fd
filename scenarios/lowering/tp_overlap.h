#pragma once

#include <vector>

#include "scenarios/lowering/gemm_operand.h"

namespace tandem::scenarios {

// Communication of sequence parallelism beside the GEMMs that wait for it (training.overlap.tp), as Transformer Engine's
// userbuffers do it, which Megatron-Core's --tp-comm-overlap turns on. Which product takes which way is their default
// (`initialize_ub` in transformer_engine/pytorch/module/base.py; `ub_overlap_rs_dgrad` is off, the other switches are on):
//
//   all-gather, then y = x W^T (column forward) or dx = dy W (row backward)    ring: "ring_exchange"
//   y = x W^T, then reduce-scatter (row forward)                               chunks: "pipeline"
//   column backward: x is gathered beside dx = dy W, dx scattered beside dW    "bulk"; the same without overlap, see linear.h
//
// Left as they are, as there: the LM head, which is none of Transformer Engine's layers, and the experts' grouped GEMMs.
// TorchTitan's asynchronous tensor parallelism cuts the same products, but the reduce-scattered ones by rows.

bool overlaps_tp(const Context& context, GemmMath math);

/// Forward: y = x W^T for each of the weights into `outputs` [s, b, ...], from the shard `x` [s/tp, b, h]. In hop j of tp, a rank
/// multiplies the shard of rank (r - j) mod tp and sends it on to the next rank meanwhile.
///
/// With t for the way of a shard and g for a product, all take max over j of j t + (tp - j) g: g tp where g >= t, else
/// (tp - 1) t + g.
void multiply_in_ring(Context& context, const std::vector<ParameterId>& weights, BufferId x, const std::vector<BufferId>& outputs,
                      std::string_view name);

/// Backward: dx = dy W likewise, for the shard `dy`, and dy whole, for the gradient of the weight. The rank's own shard is copied
/// to its place there first, or cast.
struct GatheredGradient {
  BufferId dy = no_id, dx = no_id;
};
GatheredGradient input_gradient_in_ring(Context& context, ParameterId weight, BufferId dy, std::string_view name);

/// Forward: y = x W^T in four chunks of W's outputs (`num_splits`), each reduce-scattered while the next is multiplied, so that a
/// rank ends up with the rows that it has without overlap. Only the last chunk's reduce-scatter has nothing beside it. The
/// chunks are joined by a copy of y's shard, where userbuffers scatter to rows of y's full width.
BufferId multiply_and_scatter(Context& context, ParameterId weight, BufferId x, std::string_view name);

}  // namespace tandem::scenarios
