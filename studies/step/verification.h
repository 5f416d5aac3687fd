#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/host/compare.h"
#include "studies/step/executed_step.h"

namespace tandem::studies {

/// Returns the scenario on one rank: same model, same global batch, nothing sharded. Under local SGD it is what one data-parallel
/// replica does between two exchanges, with its share of the batch.
Scenario unsharded(const Scenario& scenario);

/// Executes the unsharded step on the same data and compares. Under local SGD executes the unsharded model's steps on each
/// replica's sequences, one replica after the other; the replicas must have agreed on the mean of these weights. Where a
/// compressor holds part of the gradients back, executes the step once more with the residuals of all ranks added to the
/// gradients after they were reduced, and compares that: nothing may have been lost or counted twice
/// (scenarios/lowering/compressor.h).
StepDifference compare_with_unsharded(const ExecutedStep& step, const Scenario& scenario, Progress* progress = nullptr);

/// Compares the step as it is, compressed gradients and all.
StepDifference compare_as_applied(const ExecutedStep& step, const Scenario& scenario);

/// Says why the sharded step rounds other numbers to fp8 or fp4 than the unsharded one, or rounds them with other scales: a
/// phrase for each reason, such as "tp 2 cuts weights and activations". Empty where each tensor that is cast is a tensor of the
/// unsharded step, to the last bit: of data-parallel and pipelined steps, whose gradients alone are summed in another order.
std::vector<std::string> causes_of_other_rounding(const Scenario& scenario);

/// How far a step may be from the unsharded one, relative to each tensor's largest element.
struct VerificationTolerance {
  double gradients = 0;
  double rest = 0;  ///< updated weights, the loss
  bool allows(const StepDifference& difference) const;
};

/// Returns 1e-4 in fp32, in which the host computes. Where numbers are rounded to a coarser `precision` (on GPUs), gradients may
/// be off by 32 times its unit roundoff, since all the roundings of a step add up in them: a tiny model of four layers has been
/// seen at 17 in bf16 (6.7e-2) and, where gradients are small, 29 in fp16, both on an H200; a lost or doubled summand is at 100
/// and more. Weights and loss may be off by 2e-2
/// in bf16, and as much as gradients in fp16. In fp8 both may be off by 0.5.
VerificationTolerance verification_tolerance(DType precision);

/// Where a host rounds to fp8 or fp4 what the unsharded step does not: how far the two are apart as executed, and why.
struct OtherRounding {
  double difference = 0;
  std::vector<std::string> causes;
};

/// A step held against the unsharded one, in the same precision. Where it rounds other numbers, `difference` is that of the two
/// steps executed once more without rounding.
struct Verification {
  VerificationTolerance tolerance;
  StepDifference difference;
  std::optional<OtherRounding> other_rounding = {};
  /// Where a compressor holds part of the gradients back: the largest relative difference of those that the step applied.
  std::optional<double> compression_error = {};
  bool same() const { return tolerance.allows(difference); }
};
Verification verify(const ExecutedStep& step, const Scenario& scenario, Progress* progress = nullptr);

}  // namespace tandem::studies
