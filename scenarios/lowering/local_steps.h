#pragma once

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

// Local SGD (Stich 2019; Lin et al. 2020, "Don't use large mini-batches, use local SGD", section 2), with Adam: each
// data-parallel replica takes `training.sync_every` steps on its own sequences, and then all go on from the mean of their
// weights. A replica is what works on one model: ranks that differ along dp alone belong to different ones. Inside it gradients
// are reduced in every step, over cp and where experts are replicated, and clipped by the replica's own norm.

/// Ends such a period: all-reduces the fp32 master copies of the weights to their mean, bucket by bucket as Adam leaves them, and
/// casts that to the weights. The moments stay each replica's own.
void average_weights(Context& context);

}  // namespace tandem::scenarios
