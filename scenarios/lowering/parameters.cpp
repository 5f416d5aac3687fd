#include "scenarios/lowering/parameters.h"

namespace tandem {

std::int64_t ParameterSpec::rows() const {
  std::int64_t sum = 0;
  for (const ParameterPiece& piece : pieces) sum += piece.rows;
  return sum;
}

ParameterId ChunkParameters::declare(ParameterSpec spec) {
  specs_.push_back(std::move(spec));
  return static_cast<ParameterId>(specs_.size() - 1);
}

std::vector<std::vector<ParameterId>> ChunkParameters::fill_buckets(std::int64_t bucket_parameters) const {
  std::vector<std::vector<ParameterId>> filled;
  for (const ParameterKind kind : {ParameterKind::sharded, ParameterKind::replicated, ParameterKind::tied}) {
    std::int64_t room = 0;
    for (auto id = static_cast<ParameterId>(specs_.size()); id-- > 0;) {
      if (specs_[id].kind != kind) continue;
      if (room <= 0) {
        filled.emplace_back();
        room = bucket_parameters;
      }
      filled.back().push_back(id);
      room -= specs_[id].rows() * specs_[id].columns();
    }
  }
  return filled;
}

void ChunkParameters::allocate(DagBuilder& builder, RankIndex rank, const TrainingSpec& training, int zero, std::int64_t owners,
                               std::int64_t owned_slice) {
  placed_.resize(specs_.size());
  for (const std::vector<ParameterId>& ids : fill_buckets(training.bucket_parameters)) {
    std::int64_t elements = 0;
    for (const ParameterId id : ids) elements += specs_[id].rows() * specs_[id].columns();
    const std::int64_t slice = (elements + owners - 1) / owners;
    const Shape whole(slice * owners);

    Bucket bucket{.kind = specs_[ids.front()].kind, .norm_share = specs_[ids.front()].norm_share};
    bucket.weights = builder.buffer(rank, BufferKind::parameter, training.precision, whole);
    bucket.weight_slice = builder.view(bucket.weights, owned_slice * slice, Shape(slice));
    if (zero >= 2 && owners > 1) {
      bucket.gradients = builder.buffer(rank, BufferKind::communication, training.grad_dtype, whole);
      bucket.gradient_slice = builder.buffer(rank, BufferKind::gradient, training.grad_dtype, Shape(slice));
    } else {
      bucket.gradients = builder.buffer(rank, BufferKind::gradient, training.grad_dtype, whole);
      bucket.gradient_slice = builder.view(bucket.gradients, owned_slice * slice, Shape(slice));
    }
    for (BufferId* state : {&bucket.master, &bucket.momentum, &bucket.variance}) {
      *state = builder.buffer(rank, BufferKind::optimizer, DType::f32, Shape(slice));
    }

    std::int64_t offset = 0;
    for (const ParameterId id : ids) {
      const ParameterSpec& spec = specs_[id];
      const Shape shape(spec.rows(), spec.columns());
      placed_[id] = {builder.view(bucket.weights, offset, shape), builder.view(bucket.gradients, offset, shape), buckets_.size()};
      bucket.uses += spec.uses;
      for (const ParameterPiece& piece : spec.pieces) {
        const BufferId block = builder.view(bucket.weights, offset, Shape(piece.rows, piece.columns));
        builder.dag().shards.push_back(
            {block, piece.tensor, piece.tensor_rows, piece.tensor_columns, piece.row, piece.column, piece.rows, piece.columns});
        offset += piece.rows * piece.columns;
      }
    }
    buckets_.push_back(bucket);
  }
}

}  // namespace tandem
