#pragma once

#include "runtime/host/compare.h"
#include "studies/step/executed_step.h"

namespace tandem::studies {

/// The scenario on one rank: same model, same global batch, nothing sharded. Under local SGD: what one data-parallel replica does
/// between two exchanges, with its share of the batch.
Scenario unsharded(const Scenario& scenario);

/// Executes the unsharded step on the same data and compares. Under local SGD: the unsharded model's steps on each replica's
/// sequences, one replica after the other; the mean of their weights is what the replicas must have agreed on.
StepDifference compare_with_unsharded(const ExecutedStep& step, const Scenario& scenario, Progress* progress = nullptr);

/// How far a step may be from the unsharded one, relative to each tensor's largest element.
struct VerificationTolerance {
  double gradients = 0;
  double rest = 0;  ///< updated weights, the loss
  bool allows(const StepDifference& difference) const;
};

/// 1e-4 in fp32. Where numbers are rounded to a coarser `precision` (on GPUs): weights and loss 2e-2 in bf16; gradients 16 times
/// its unit roundoff, since they are what all the roundings of a step add up to: a tiny model of four layers has been seen at 9
/// in bf16 (3.5e-2) and 11 in fp16. A lost or doubled summand is at 100 and more.
VerificationTolerance verification_tolerance(DType precision);

/// A step held against the unsharded one.
struct Verification {
  VerificationTolerance tolerance;
  StepDifference difference;
  bool same() const { return tolerance.allows(difference); }
};
Verification verify(const ExecutedStep& step, const Scenario& scenario, Progress* progress = nullptr);

}  // namespace tandem::studies
