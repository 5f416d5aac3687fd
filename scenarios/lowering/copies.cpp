#include "scenarios/lowering/copies.h"

#include <vector>

namespace tandem::scenarios {
namespace {

void add_up_mirrors(Context& context) {
  for (const std::int16_t chunk : context.chunk_order) {
    context.chunk = chunk;
    for (const Bucket& bucket : context.parameters().buckets()) {
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
