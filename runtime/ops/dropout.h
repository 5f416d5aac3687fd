#pragma once

#include "runtime/ops/dropout_mask.h"
#include "runtime/ops/operation.h"

namespace tandem {

// Elements are kept with probability 1 - p and multiplied by 1 / (1 - p) then (Srivastava et al. 2014, "inverted"). x is
// [rows,b,h], or probabilities of attention [b,H,rows,keys] whose columns are all keys of the sequence; `sequences` (int32, b of
// them) are the numbers of the micro-batch's sequences in the global batch. The mask has a byte for an element: 1 where it is
// kept. It is a function of the element's place in the unsharded model (dropout_mask.h), by DropoutAttributes.

/// dropout: x, sequences; y, mask.
CostFunction dropout_cost;
HostKernel dropout_host;

/// dropout_backward: dy, mask; dx.
CostFunction dropout_backward_cost;
HostKernel dropout_backward_host;

/// dropout_add: x, residual, sequences; y, mask. y = residual + dropout(x): the end of a residual branch, as frameworks fuse it.
/// dropout_add_backward is dropout_backward, of the branch alone.
CostFunction dropout_add_cost;
HostKernel dropout_add_host;

/// Throws std::logic_error for shapes that break the operations' rule.
DropoutMask mask_of(const Shape& x, const Shape& sequences, const DropoutAttributes& attributes);

/// 1 / (1 - probability)
float kept_factor(const DropoutAttributes& attributes);

}  // namespace tandem
