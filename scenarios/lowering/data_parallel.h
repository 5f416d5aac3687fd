#pragma once

#include <memory>
#include <vector>

#include "scenarios/lowering/compressor.h"
#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

/// Gradient buckets on their way: counts what each bucket still lacks of all its chunk's backward passes, whole or split, and
/// reduces it over the data-parallel group as soon as it is whole. Without overlap all are reduced at the end, or with ZeRO-3 at
/// once while compute waits, so that whole gradients need not be kept. From ZeRO-1 on a reduce-scatter gives each rank its slice;
/// plain data parallelism all-reduces.
///
/// `training.grad_compression` casts each bucket to a smaller type for the reduction and back before the optimizer, as DDP's
/// bf16_compress_hook does (torch/distributed/algorithms/ddp_comm_hooks). The host computes in fp32 whatever the type, so that an
/// executed step shows where the data goes, not what rounding costs. What else makes gradients smaller is a `Compressor`.
class GradientReduction {
 public:
  /// `passes`: by chunk, how many micro-batches go backward through it.
  GradientReduction(Context& context, const std::vector<int>& passes);

  /// Tells that one more contribution to the parameter's gradient was lowered.
  void add(std::size_t chunk, ParameterId parameter);
  /// Reduces what is left, after the last backward of the step.
  void finish();

 private:
  struct Compressed {
    std::size_t chunk;
    BufferId slice, gradient_slice;
  };
  Context& context_;
  bool reduces_at_end_;
  std::vector<std::vector<int>> missing_;  ///< contributions to come, by chunk and bucket
  std::vector<Compressed> compressed_;     ///< reduced, not yet decompressed
  std::unique_ptr<Compressor> compressor_;

  void reduce(std::size_t chunk, std::size_t bucket);
  void reduce_compressed(std::size_t chunk, const Bucket& bucket);
  void compress(std::size_t chunk, std::size_t bucket);
  void decompress();
};

/// Returns whether weights are gathered for each use (ZeRO-3).
bool keeps_slices_of_weights(const Context& context);

/// Gathers every rank's updated slices on all ranks (ZeRO-1 and 2). They are gathered at the start of the step when it overlaps
/// with the forward: what the previous step's optimizer wrote is gathered while the first chunks already compute, so that a step
/// is one period of training.
void gather_parameters(Context& context);

}  // namespace tandem::scenarios
