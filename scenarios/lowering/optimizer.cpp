#include "scenarios/lowering/optimizer.h"

#include "scenarios/lowering/adafactor.h"
#include "scenarios/lowering/copies.h"
#include "scenarios/lowering/data_groups.h"
#include "scenarios/lowering/muon.h"
#include "scenarios/lowering/offload.h"
#include "scenarios/schedules/chunk_placement.h"

namespace tandem::scenarios {
namespace {

template <typename Visit>
void for_each_bucket(Context& context, Visit visit) {
  for (const std::int16_t chunk : context.chunk_order) {
    context.chunk = chunk;
    for (const Bucket& bucket : context.parameters().buckets())
      if (!bucket.frozen) visit(bucket);
  }
  context.chunk = -1;
}

void add_up_shared_gradients(Context& context) {
  add_up_copies(context);
  for_each_bucket(context, [&](const Bucket& bucket) {
    const BufferId gradient = bucket.gradient_slice;
    // Without sp every rank saw all tokens, and all hold the same gradient already.
    const bool of_own_tokens = bucket.kind == ParameterKind::replicated && context.sizes.sequence_parallel;
    if (of_own_tokens || (bucket.kind == ParameterKind::by_heads && context.sizes.tp > 1)) {
      const char* name = bucket.kind == ParameterKind::by_heads ? "head gradients" : "norm gradients";
      context.collective(OpKind::all_reduce, Slot::tp, Stream::tp, name, gradient, gradient);
    }
    if (bucket.kind == ParameterKind::shared_kv) {
      context.collective(OpKind::all_reduce, Slot::kv_replicas, Stream::tp, "kv gradients", gradient, gradient);
    }
    if (bucket.kind == ParameterKind::tied && context.communicator(Slot::embedding) != no_id) {
      context.collective(OpKind::all_reduce, Slot::embedding, Stream::dp, "embedding gradients", gradient, gradient);
    }
  });
}

BufferId squared_norm(Context& context) {
  const int copies = ChunkPlacement(context.scenario).copies();
  const BufferId sum = context.activation(Shape(1), DType::f32);
  context.kernel(OpKind::fill, ScaleAttributes{0.0F}, "gradient norm", {}, {sum});
  for_each_bucket(context, [&](const Bucket& bucket) {
    const double ranks_of_a_slice = static_cast<double>(ownership_of(context, bucket.kind).replicas * copies);
    const ScaleAttributes share{static_cast<float>(bucket.norm_share / ranks_of_a_slice)};
    context.kernel(OpKind::square_sum, share, "gradient norm", {bucket.gradient_slice}, {}, {sum});
  });
  if (context.communicator(Slot::gradient_norm) != no_id) {
    context.collective(OpKind::all_reduce, Slot::gradient_norm, Stream::dp, "gradient norm", sum, sum);
  }
  return sum;
}

/// What of a slice the GPU updates itself.
BufferId kept_part(Context& context, const Bucket& bucket, BufferId slice) {
  const std::int64_t offloaded = bucket.on_host.elements;
  if (offloaded == 0) return slice;
  return context.builder.view(slice, offloaded, Shape(context.shape_of(slice).elements() - offloaded));
}

}  // namespace

void clear_gradients(Context& context) {
  const Phase before = context.phase;
  context.phase = Phase::backward_weight;
  for (const Bucket& bucket : context.parameters().buckets()) {
    if (!bucket.frozen) context.kernel(OpKind::fill, ScaleAttributes{0.0F}, "clear gradients", {}, {bucket.gradients});
  }
  context.phase = before;
}

void update_parameters(Context& context) {
  add_up_shared_gradients(context);
  update_expert_biases(context);
  const BufferId norm = squared_norm(context);
  update_on_host(context, norm);
  if (context.scenario.training.optimizer == OptimizerKind::adafactor) return update_by_adafactor(context, norm);
  for_each_bucket(context, [&](const Bucket& bucket) {
    for (const MuonMatrix& matrix : bucket.matrices) update_by_muon(context, bucket, matrix, norm);
    if (bucket.variance == no_id) return;
    context.kernel(OpKind::adam, AdamAttributes{.step = 1 + context.steps_before}, "adam",
                   {kept_part(context, bucket, bucket.gradient_slice), norm}, {kept_part(context, bucket, bucket.weight_slice)},
                   {bucket.master, bucket.momentum, bucket.variance});
  });
}

}  // namespace tandem::scenarios
