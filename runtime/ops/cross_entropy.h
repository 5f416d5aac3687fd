#pragma once

#include "runtime/ops/operation.h"

namespace tandem {

// Softmax cross entropy over a vocabulary of which this rank holds the V tokens from CrossEntropyAttributes::vocab_start on.
// Between the steps, `max` is all-reduced by maximum, `sum` and `target` by addition, over the ranks that share the vocabulary
// (Shoeybi et al. 2019, Megatron-LM, section 3).
//
// Shapes: logits and dlogits [s,b,V]; targets [s,b] int32; max, sum and target [s,b] fp32; loss [1].

/// cross_entropy_max: logits; max
CostFunction cross_entropy_max_cost;
HostKernel cross_entropy_max_host;

/// cross_entropy_sum: logits, max; sum. sum = sum of exp(logit - max)
CostFunction cross_entropy_sum_cost;
HostKernel cross_entropy_sum_host;

/// cross_entropy_target: logits, targets; target. The target's logit; 0 if another rank holds it.
CostFunction cross_entropy_target_cost;
HostKernel cross_entropy_target_host;

/// cross_entropy_loss: max, sum, target; loss. loss = scale * sum over tokens of log(sum) + max - target
CostFunction cross_entropy_loss_cost;
HostKernel cross_entropy_loss_host;

/// cross_entropy_backward: logits, targets, max, sum; dlogits. dlogits = scale * (exp(logit - max) / sum - [token is the
/// target]); dlogits may be logits.
CostFunction cross_entropy_backward_cost;
HostKernel cross_entropy_backward_host;

}  // namespace tandem
