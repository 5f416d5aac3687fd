#include "scenarios/lowering/data_parallel.h"

#include <algorithm>
#include <stdexcept>

#include "scenarios/lowering/data_groups.h"

namespace tandem::scenarios {

GradientReduction::GradientReduction(Context& context, const std::vector<int>& passes)
    : context_(context),
      reduces_at_end_(!context.scenario.training.overlap_dp && !keeps_slices_of_weights(context)),
      missing_(context.chunks.size()),
      compressor_(make_compressor(context)) {
  for (std::size_t chunk = 0; chunk < missing_.size(); ++chunk) {
    for (const Bucket& bucket : context.chunks[chunk].buckets()) missing_[chunk].push_back(bucket.uses * passes[chunk]);
  }
}

void GradientReduction::add(std::size_t chunk, ParameterId parameter) {
  const std::size_t bucket = context_.chunks[chunk].bucket_of(parameter);
  if (--missing_[chunk][bucket] == 0 && !reduces_at_end_) reduce(chunk, bucket);
}

void GradientReduction::finish() {
  const TaskId last_backward = context_.builder.last_on(context_.rank, Stream::compute);
  for (const std::int16_t number : context_.chunk_order) {
    const auto chunk = static_cast<std::size_t>(number);
    for (std::size_t bucket = 0; bucket < missing_[chunk].size(); ++bucket) {
      if (missing_[chunk][bucket] != 0) throw std::logic_error("a gradient bucket misses contributions");
      if (!reduces_at_end_ || context_.chunks[chunk].buckets()[bucket].frozen) continue;
      reduce(chunk, bucket);
      const TaskId reduced = context_.builder.last_on(context_.rank, Stream::dp);
      if (last_backward != no_id && reduced != no_id && reduced > last_backward) context_.builder.depend(last_backward, reduced);
    }
  }
  decompress();
}

void GradientReduction::reduce(std::size_t chunk, std::size_t bucket) {
  const Bucket& b = context_.chunks[chunk].buckets()[bucket];
  const Phase before = context_.phase;
  context_.phase = Phase::backward_weight;
  if (compressor_ && shares_weights(context_, b.kind)) {
    compress(chunk, bucket);
  } else if (context_.scenario.training.grad_compression > 1 && shares_weights(context_, b.kind)) {
    reduce_compressed(chunk, b);
  } else {
    reduce_to_slices(context_, b.kind, b.gradients, b.gradient_slice);
  }
  if (!context_.scenario.training.overlap_dp && !reduces_at_end_) {
    context_.hold_compute_until(context_.builder.last_on(context_.rank, Stream::dp));
  }
  context_.phase = before;
}

void GradientReduction::reduce_compressed(std::size_t chunk, const Bucket& bucket) {
  const TrainingSpec& training = context_.scenario.training;
  const DType small = size_of(training.grad_dtype) / training.grad_compression == 1 ? DType::f8 : DType::bf16;
  const Shape slice = context_.shape_of(bucket.gradient_slice);
  const BufferId whole = context_.builder.buffer(context_.rank, BufferKind::communication, small, bucket.whole);
  const BufferId own = context_.builder.view(whole, ownership_of(context_, bucket.kind).slice * slice.elements(), slice);
  context_.kernel(OpKind::scale, ScaleAttributes{1.0F}, "compress gradients", {bucket.gradients}, {whole});
  reduce_to_slices(context_, bucket.kind, whole, own);
  compressed_.push_back({chunk, own, bucket.gradient_slice});
}

void GradientReduction::compress(std::size_t chunk, std::size_t bucket) {
  const Bucket& b = context_.chunks[chunk].buckets()[bucket];
  BucketGradients gradients{.chunk = chunk, .kind = b.kind, .all = no_id, .tensors = context_.chunks[chunk].gradients_of(bucket)};
  std::int64_t elements = 0;
  for (const BufferId tensor : gradients.tensors) elements += context_.shape_of(tensor).elements();
  gradients.all = context_.builder.view(b.gradients, 0, Shape(elements));
  compressor_->send(gradients);
}

/// Only now: earlier, the backward of what follows would wait for the reduction.
void GradientReduction::decompress() {
  for (const Compressed& bucket : compressed_) {
    context_.chunk = static_cast<std::int16_t>(bucket.chunk);
    context_.kernel(OpKind::scale, ScaleAttributes{1.0F}, "decompress gradients", {bucket.slice}, {bucket.gradient_slice});
  }
  if (compressor_) {
    compressor_->receive();
    if (context_.restores_residuals) compressor_->restore();
    if (context_.scenario.parallelism.zero > 0) context_.gradients_are_whole();
  }
  context_.chunk = -1;
}

bool keeps_slices_of_weights(const Context& context) {
  return context.scenario.parallelism.zero >= 3 &&
         std::max(context.sizes.ownership.owners, context.sizes.expert_ownership.owners) > 1;
}

namespace {

/// Copies what the optimizer updated here to its place in what is gathered.
void fill_gathered(Context& context, const Bucket& bucket) {
  const auto copy = [&](BufferId master, BufferId weight) {
    const Buffer place = context.builder.dag().buffers[weight];
    context.kernel(OpKind::scale, ScaleAttributes{1.0F}, "gathered weights", {master},
                   {context.builder.view(bucket.gathered, place.offset, place.shape)});
  };
  for (const MuonMatrix& matrix : bucket.matrices) copy(matrix.master, matrix.weight);
  if (bucket.matrices.empty() && bucket.master != no_id) copy(bucket.master, bucket.weight_slice);
}

void gather(Context& context, const Bucket& bucket) {
  const bool through_another = bucket.gathered != no_id, alone = ownership_of(context, bucket.kind).owners == 1;
  if (!through_another) {
    if (!alone) gather_slices(context, bucket.kind, bucket.weight_slice, bucket.weights);
    return;
  }
  fill_gathered(context, bucket);
  const Buffer own = context.builder.dag().buffers[bucket.weight_slice];
  const BufferId slice = context.builder.view(bucket.gathered, own.offset, own.shape);
  if (!alone) gather_slices(context, bucket.kind, slice, bucket.gathered);
  if (context.scenario.training.overlap_dp)
    context.gathered_weights[bucket.weights] = bucket.gathered;  // each weight is cast when it is first read
  else
    context.kernel(OpKind::cast, {}, "cast", {bucket.gathered}, {bucket.weights});
}

}  // namespace

void gather_parameters(Context& context) {
  if (keeps_slices_of_weights(context)) return;
  for (const std::int16_t chunk : context.chunk_order) {
    context.chunk = chunk;
    const std::vector<Bucket>& buckets = context.parameters().buckets();
    // Buckets lie in backward order: the forward needs the last one first.
    for (auto bucket = buckets.rbegin(); bucket != buckets.rend(); ++bucket)
      if (!bucket->frozen) gather(context, *bucket);
  }
  context.chunk = -1;
}

}  // namespace tandem::scenarios
