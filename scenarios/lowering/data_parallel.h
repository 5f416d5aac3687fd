#pragma once

#include <vector>

#include "scenarios/lowering/context.h"

namespace tandem {

/// Gradient buckets on their way: counts what each bucket still lacks of all its chunk's backward passes, whole or split, and
/// reduces it over the data-parallel group as soon as it is whole (or all at the end, without overlap). From ZeRO-1 on a
/// reduce-scatter gives each rank its slice; plain data parallelism all-reduces.
class GradientReduction {
 public:
  /// `passes`: by chunk, how many micro-batches go backward through it.
  GradientReduction(Context& context, const std::vector<int>& passes);

  /// One more contribution to the parameter's gradient was lowered.
  void add(std::size_t chunk, ParameterId parameter);
  /// After the last backward of the step.
  void finish();

 private:
  Context& context_;
  std::vector<std::vector<int>> missing_;  ///< contributions to come, by chunk and bucket

  void reduce(std::size_t chunk, std::size_t bucket);
};

/// From ZeRO-1 on: every rank's updated slices go to all. Lowered at the start of the step when it overlaps with the forward:
/// what the previous step's optimizer wrote is gathered while the first chunks already compute, so that a step is one period of
/// training.
void gather_parameters(Context& context);

}  // namespace tandem
