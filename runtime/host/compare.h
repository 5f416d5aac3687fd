#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/host/memory.h"

namespace tandem {

/// The largest relative difference of one tensor: max |a - b| / max |reference|, over all its shards and replicas. Of a gradient
/// the divisor is at least a thousandth of the step's largest one: some are zero but for rounding, such as those of what all
/// keys have in common, or of queries that see one key alone.
struct TensorDifference {
  std::string tensor;
  double gradient = 0;
  double weight = 0;
};

struct StepDifference {
  double loss = 0;  ///< relative
  double reference_loss = 0;
  std::vector<TensorDifference> tensors;  ///< every tensor of the reference, sorted by name
  double largest() const;
};

/// Compares an executed step with the executed unsharded step on the same data. What Adam read and wrote counts: the gradient and
/// parameter operands of its tasks, whose elements `Dag::shards` places in the unsharded tensors. Throws std::runtime_error when
/// an element of the reference is covered by no shard.
StepDifference compare(const HostMemory& step, const HostMemory& reference);

/// The same where the data-parallel replicas took steps of their own and then averaged their weights: reference r is the
/// unsharded run of replica r. Gradients are compared replica by replica, weights with the mean of the references'. The losses
/// are means over all replicas and steps.
StepDifference compare(const HostMemory& step, std::span<const HostMemory* const> references);

}  // namespace tandem
