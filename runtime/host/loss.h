#pragma once

#include <string>

#include "runtime/host/memory.h"

namespace tandem {

/// Returns what one rank of an executed DAG adds to the loss, summed over its steps.
double loss_share(const HostMemory& memory, RankIndex rank);

/// Returns the loss of an executed DAG, the mean over its steps. Under local SGD the replicas' batches add up within a step.
double mean_loss(const HostMemory& memory);

/// "loss 6.931472\n", with the digits that tell one fp32 number from the next.
std::string loss_sentence(double loss);
/// Throws std::runtime_error, one sentence, where the loss is no number.
void refuse_broken_loss(double loss);
std::string loss_sentence(const HostMemory& memory);

}  // namespace tandem
