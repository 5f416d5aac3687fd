#include "scenarios/lowering/data_parallel.h"

#include <stdexcept>

namespace tandem {

GradientReduction::GradientReduction(Context& context, const std::vector<int>& passes)
    : context_(context), missing_(context.chunks.size()) {
  for (std::size_t chunk = 0; chunk < missing_.size(); ++chunk) {
    for (const Bucket& bucket : context.chunks[chunk].buckets()) missing_[chunk].push_back(bucket.uses * passes[chunk]);
  }
}

void GradientReduction::add(std::size_t chunk, ParameterId parameter) {
  const std::size_t bucket = context_.chunks[chunk].bucket_of(parameter);
  if (--missing_[chunk][bucket] == 0 && context_.scenario.training.overlap_dp) reduce(chunk, bucket);
}

void GradientReduction::finish() {
  for (std::size_t chunk = 0; chunk < missing_.size(); ++chunk) {
    for (std::size_t bucket = 0; bucket < missing_[chunk].size(); ++bucket) {
      if (missing_[chunk][bucket] != 0) throw std::logic_error("a gradient bucket misses contributions");
      if (!context_.scenario.training.overlap_dp) reduce(chunk, bucket);
    }
  }
}

void GradientReduction::reduce(std::size_t chunk, std::size_t bucket) {
  if (context_.communicator(Slot::data) == no_id) return;
  const Bucket& b = context_.chunks[chunk].buckets()[bucket];
  const Phase before = context_.phase;
  context_.phase = Phase::backward_weight;
  if (context_.scenario.parallelism.zero >= 1) {
    context_.collective(OpKind::reduce_scatter, Slot::data, Stream::dp, "gradients", b.gradients, b.gradient_slice);
  } else {
    context_.collective(OpKind::all_reduce, Slot::data, Stream::dp, "gradients", b.gradients, b.gradients);
  }
  context_.phase = before;
}

void gather_parameters(Context& context) {
  if (context.scenario.parallelism.zero < 1 || context.communicator(Slot::data) == no_id) return;
  for (std::size_t chunk = 0; chunk < context.chunks.size(); ++chunk) {
    context.chunk = static_cast<std::int16_t>(chunk);
    const std::vector<Bucket>& buckets = context.chunks[chunk].buckets();
    // Buckets lie in backward order: the forward needs the last one first.
    for (auto bucket = buckets.rbegin(); bucket != buckets.rend(); ++bucket) {
      context.collective(OpKind::all_gather, Slot::data, Stream::dp, "parameters", bucket->weight_slice, bucket->weights);
    }
  }
  context.chunk = -1;
}

}  // namespace tandem
