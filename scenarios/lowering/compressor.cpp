#include "scenarios/lowering/compressor.h"

#include <algorithm>

#include "scenarios/lowering/data_groups.h"

namespace tandem::scenarios {

BufferId Compressor::state(const Shape& shape) {
  const BufferId made = context_.builder.buffer(context_.rank, BufferKind::gradient, type_of_gradients(), shape);
  context_.builder.dag().inputs.push_back({.buffer = made, .content = InputShard::Content::zeros});
  return made;
}

BufferId Compressor::residual_of(const BucketGradients& bucket, BufferId gradients) {
  const BufferId residual = state(context_.shape_of(gradients));
  residuals_.push_back({bucket.kind, gradients, residual, 0});
  return residual;
}

BufferId Compressor::residual_of_sum(const BucketGradients& bucket, std::int64_t first, std::int64_t elements) {
  const BufferId residual = state(Shape(elements));
  residuals_.push_back({bucket.kind, bucket.all, residual, first});
  return residual;
}

void Compressor::collect(OpKind op, const BucketGradients& bucket, BufferId in, BufferId out) {
  const Slot slot = op == OpKind::all_to_all ? data_exchange_slot(bucket.kind) : data_slot(bucket.kind);
  context_.collective(op, slot, Stream::dp, "gradients", in, out);
}

PlaceInGroup Compressor::place(const BucketGradients& bucket) const {
  return place_in(context_.world, context_.rank, data_slot(bucket.kind));
}

void Compressor::restore() {
  for (const auto& [kind, gradients, held_back, first] : residuals_) {
    const Shape shape = context_.shape_of(gradients);
    const std::int64_t count = std::min(context_.shape_of(held_back).elements(), shape.elements() - first);
    const BufferId sum = exchanged(type_of_gradients(), shape);
    context_.kernel(OpKind::fill, ScaleAttributes{0.0F}, "restore gradients", {}, {sum});
    if (count > 0) {
      context_.kernel(OpKind::scale, ScaleAttributes{1.0F}, "restore gradients",
                      {context_.builder.view(held_back, 0, Shape(count))}, {context_.builder.view(sum, first, Shape(count))});
    }
    context_.collective(OpKind::all_reduce, data_slot(kind), Stream::dp, "restore gradients", sum, sum);
    context_.kernel(OpKind::add, {}, "restore gradients", {gradients, sum}, {gradients});
  }
}

std::unique_ptr<Compressor> make_compressor(Context& context) {
  switch (context.scenario.training.compressor.method) {
    case CompressionMethod::top_k:
      return make_top_k(context);
    case CompressionMethod::one_bit:
      return make_one_bit(context);
    case CompressionMethod::powersgd:
      return make_powersgd(context);
    case CompressionMethod::cast:
      break;
  }
  return nullptr;
}

}  // namespace tandem::scenarios
