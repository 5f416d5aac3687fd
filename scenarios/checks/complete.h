#pragma once

#include <cstdint>

#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// Fills in what follows from the rest: whichever of cluster.gpus and parallelism.dp is 0, as far as the rules of the world hold,
/// and the gradient bucket. Takes sp away where there is one tensor-parallel rank.
void complete(Scenario& scenario);

/// Returns Megatron-Core's default, which fills in training.bucket_MB: DistributedDataParallel takes max(40,000,000, 1,000,000 *
/// data-parallel size) parameters.
std::int64_t default_bucket_parameters(std::int64_t dp);

}  // namespace tandem::scenarios
