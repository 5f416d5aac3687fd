#include "scenarios/lowering/copies.h"

#include <vector>

#include "scenarios/schedules/chunk_placement.h"

namespace tandem::scenarios {
namespace {

/// In the order of the model's parts, which is the same on both stages.
void add_up_mirrors(Context& context) {
  const bool second_half = context.world.ranks[context.rank].pp * 2 >= context.scenario.parallelism.pp;
  for (std::size_t i = 0; i < context.chunks.size(); ++i) {
    const std::size_t chunk = second_half ? context.chunks.size() - 1 - i : i;
    context.chunk = static_cast<std::int16_t>(chunk);
    for (const Bucket& bucket : context.chunks[chunk].buckets()) {
      if (bucket.frozen) continue;
      context.collective(OpKind::all_reduce, Slot::mirror, Stream::dp, "mirrored gradients", bucket.gradient_slice,
                         bucket.gradient_slice);
    }
  }
  context.chunk = -1;
}

void add_up_tied(Context& context) {
  std::vector<BufferId> gradients;
  for (const ChunkParameters& chunk : context.chunks) {
    for (const Bucket& bucket : chunk.buckets()) {
      if (bucket.kind == ParameterKind::tied) gradients.push_back(bucket.gradient_slice);
    }
  }
  if (gradients.size() != 2) return;
  const BufferId sum = context.activation(context.shape_of(gradients[0]), context.scenario.training.grad_dtype);
  context.kernel(OpKind::add, {}, "embedding gradients", {gradients[0], gradients[1]}, {sum});
  for (const BufferId gradient : gradients) {
    context.kernel(OpKind::scale, ScaleAttributes{1.0F}, "embedding gradients", {sum}, {gradient});
  }
}

}  // namespace

void add_up_copies(Context& context) {
  if (context.communicator(Slot::mirror) != no_id) add_up_mirrors(context);
  add_up_tied(context);
}

}  // namespace tandem::scenarios
