#pragma once

#include <iosfwd>

#include "cli/command.h"
#include "cli/executed_step.h"
#include "runtime/host/compare.h"

namespace tandem {

/// The scenario on one rank: same model, same global batch, nothing sharded. Under local SGD: what one data-parallel replica does
/// between two exchanges, with its share of the batch.
Scenario unsharded(const Scenario& scenario);

/// Executes the unsharded step on the same data and compares. Under local SGD: the unsharded model's steps on each replica's
/// sequences, one replica after the other; the mean of their weights is what the replicas must have agreed on.
StepDifference compare_with_unsharded(const ExecutedStep& step, const Scenario& scenario);

/// Prints the largest relative difference of the loss, of every gradient and of
/// every updated weight. Fails above 1e-4 in fp32; on GPUs above 2e-2 in other precisions, which they round to.
ExitCode report_verification(const ExecutedStep& step, const Scenario& scenario, std::ostream& out);

}  // namespace tandem
