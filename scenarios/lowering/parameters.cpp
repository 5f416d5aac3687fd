#include "scenarios/lowering/parameters.h"

#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>

#include "runtime/base/divide_up.h"
#include "runtime/ops/adafactor.h"
#include "scenarios/lowering/adafactor.h"
#include "scenarios/lowering/bucket_layout.h"
#include "scenarios/lowering/gemm_operand.h"
#include "scenarios/lowering/muon.h"
#include "scenarios/lowering/shards.h"

namespace tandem::scenarios {

std::int64_t ParameterSpec::rows() const {
  std::int64_t sum = 0;
  for (const ParameterPiece& piece : pieces) sum += piece.rows;
  return sum;
}

ParameterId ChunkParameters::declare(ParameterSpec spec) {
  spec.unit = unit_;
  specs_.push_back(std::move(spec));
  return static_cast<ParameterId>(specs_.size() - 1);
}

std::size_t ChunkParameters::declare_expert_bias(std::string tensor) {
  expert_biases_.push_back(std::move(tensor));
  return expert_biases_.size() - 1;
}

BufferId ChunkParameters::weight(ParameterId id) const {
  if (placed_[id].weight == no_id) throw std::logic_error("a weight is used while it is not gathered");
  return placed_[id].weight;
}

std::vector<std::vector<ParameterId>> ChunkParameters::fill_buckets(std::int64_t bucket_parameters, bool keeps_whole,
                                                                    std::int64_t dense, std::int64_t expert) const {
  std::vector<std::vector<ParameterId>> buckets;
  const auto fill = [&](ParameterKind kind, bool apart, bool narrow, bool frozen) {
    const auto owners = static_cast<double>(kind == ParameterKind::expert ? expert : dense);
    std::int64_t filled = 0, largest = 0;
    bool full = true;
    for (auto id = static_cast<ParameterId>(specs_.size()); id-- > 0;) {
      if (specs_[id].kind != kind || apart_[id] != apart || specs_[id].narrow != narrow || specs_[id].frozen != frozen) continue;
      if (full) {
        buckets.emplace_back();
        filled = largest = 0;
      }
      buckets.back().push_back(id);
      filled += elements_of(id);
      largest = std::max(largest, elements_of(id));
      const double needed = apart && keeps_whole ? least_share_of_whole * owners * static_cast<double>(largest) : 0;
      full = filled >= bucket_parameters && static_cast<double>(filled) >= needed;
    }
  };
  for (const ParameterKind kind : {ParameterKind::sharded, ParameterKind::replicated, ParameterKind::by_heads,
                                   ParameterKind::shared_kv, ParameterKind::expert, ParameterKind::tied}) {
    // The first pass needs the embedding and norms, which are not narrow: what is filled last is gathered first. So does
    // Megatron-Core, which gathers these with the first layers (distributed/param_and_grad_buffer.py, partition_buckets).
    for (const bool apart : {true, false})
      for (const bool narrow : {true, false})
        for (const bool frozen : {false, true}) fill(kind, apart, narrow, frozen);
  }
  return buckets;
}

std::vector<std::vector<ParameterId>> ChunkParameters::one_bucket_per_unit() const {
  std::vector<std::vector<ParameterId>> buckets;
  for (const std::vector<ParameterId>& of_kind : fill_buckets(std::numeric_limits<std::int64_t>::max(), false)) {
    for (std::size_t i = 0; i < of_kind.size(); ++i) {
      if (i == 0 || specs_[of_kind[i]].unit != specs_[of_kind[i - 1]].unit) buckets.emplace_back();
      buckets.back().push_back(of_kind[i]);
    }
  }
  return buckets;
}

/// Small weights lie with the large one before them in the order of the unit, those at its beginning with the first.
std::vector<std::vector<ParameterId>> ChunkParameters::one_bucket_per_weight() const {
  // stage3_param_persistence_threshold of DeepSpeed (runtime/zero/constants.py): smaller ones are not gathered by themselves.
  constexpr std::int64_t large = 100'000;
  const auto is_large = [&](ParameterId id) { return specs_[id].rows() * specs_[id].columns() >= large; };
  std::vector<std::vector<ParameterId>> buckets;
  for (const std::vector<ParameterId>& of_unit : one_bucket_per_unit()) {
    buckets.emplace_back();
    bool has_large = false;
    for (const ParameterId id : of_unit) {
      if (has_large && is_large(id)) buckets.emplace_back();
      has_large = has_large || is_large(id);
      buckets.back().push_back(id);
    }
  }
  return buckets;
}

void ChunkParameters::allocate(DagBuilder& builder, RankIndex rank, const TrainingSpec& training,
                               const ParallelismSpec& parallelism, const Ownership& dense, const Ownership& expert) {
  const int zero = parallelism.zero;
  placed_.resize(specs_.size());
  const bool muon = training.optimizer == OptimizerKind::muon, adafactor = training.optimizer == OptimizerKind::adafactor;
  for (const ParameterSpec& spec : specs_) {
    const std::string& tensor = spec.pieces.front().tensor;
    apart_.push_back(!spec.frozen && ((muon && is_muon_matrix(tensor)) || (adafactor && is_factored(tensor))));
  }
  members_ = zero < 3 ? fill_buckets(training.bucket_parameters, muon, dense.owners, expert.owners)
             : parallelism.gather_unit == GatherUnit::weight ? one_bucket_per_weight()
                                                             : one_bucket_per_unit();
  for (const std::vector<ParameterId>& ids : members_) {
    const ParameterSpec& first = specs_[ids.front()];
    const Ownership& owned = first.kind == ParameterKind::expert ? expert : dense;
    const bool sliced_weights = zero >= 3 && owned.owners > 1;
    const bool sliced_gradients = zero >= 2 && owned.owners > 1;
    const bool by_muon = muon && apart_[ids.front()];
    std::vector<std::int64_t> sizes;
    for (const ParameterId id : ids) sizes.push_back(elements_of(id));
    const auto [offsets, slice] = (by_muon ? lay_out_whole : lay_out_flat)(sizes, owned.owners, owned.granularity);
    const std::int64_t begin = owned.slice * slice;

    Bucket bucket{.kind = first.kind,
                  .norm_share = first.norm_share,
                  .narrow = first.narrow,
                  .frozen = first.frozen,
                  .unit = first.unit,
                  .whole = Shape(slice * owned.owners)};
    if (bucket.narrow) {
      bucket.weights = builder.buffer(rank, BufferKind::parameter, training.precision, bucket.whole,
                                      scaling_of(training.recipe, OperandRole::weight));
      if (training.gathered() != training.precision)
        bucket.gathered = builder.buffer(rank, BufferKind::communication, training.gathered(), bucket.whole);
      bucket.weight_slice = builder.view(bucket.weights, begin, Shape(slice));
    } else if (sliced_weights) {
      bucket.weight_slice = builder.buffer(rank, BufferKind::parameter, training.storage(), Shape(slice));
    } else {
      bucket.weights = builder.buffer(rank, BufferKind::parameter, training.storage(), bucket.whole);
      bucket.weight_slice = builder.view(bucket.weights, begin, Shape(slice));
    }
    const ResidentPart resident = sliced_weights ? ResidentPart{bucket.weight_slice, begin, begin + slice}
                                                 : ResidentPart{bucket.weights, 0, bucket.whole.elements()};
    if (bucket.frozen) {
      place(builder, ids, offsets, bucket, resident);
      continue;
    }
    if (sliced_gradients) {
      bucket.gradients = builder.buffer(rank, BufferKind::communication, training.grad_dtype, bucket.whole);
      bucket.gradient_slice = builder.buffer(rank, BufferKind::gradient, training.grad_dtype, Shape(slice));
    } else {
      bucket.gradients = builder.buffer(rank, BufferKind::gradient, training.grad_dtype, bucket.whole);
      bucket.gradient_slice = builder.view(bucket.gradients, begin, Shape(slice));
    }
    if (by_muon) own_matrices(builder, ids, offsets, begin, training, bucket);
    if (adafactor) add_pieces(ids, offsets, bucket);
    bucket.on_host.elements = std::llround(training.offload.optimizer * static_cast<double>(slice));
    if (const Shape offloaded(bucket.on_host.elements); offloaded.elements() > 0) {
      Bucket::OnHost& host = bucket.on_host;
      host.gradient = builder.buffer(rank, BufferKind::host, training.grad_dtype, offloaded);
      host.weight = builder.buffer(rank, BufferKind::host, training.storage(), offloaded);
      host.master = builder.buffer(rank, BufferKind::host, training.master_dtype, offloaded);
      host.momentum = builder.buffer(rank, BufferKind::host, training.moment_dtype, offloaded);
      host.variance = builder.buffer(rank, BufferKind::host, training.second_moment_dtype, offloaded);
    }
    if (const Shape kept(slice - bucket.on_host.elements); kept.elements() > 0 && !by_muon) {
      bucket.master = builder.buffer(rank, BufferKind::optimizer, training.master_dtype, kept);
      if (!adafactor) bucket.momentum = builder.buffer(rank, BufferKind::optimizer, training.moment_dtype, kept);
      if (!adafactor || !apart_[ids.front()])
        bucket.variance = builder.buffer(rank, BufferKind::optimizer, training.second_moment_dtype, kept);
      if (adafactor && apart_[ids.front()]) {
        const AdafactorLayout layout({.factored = true, .pieces = bucket.pieces});
        bucket.factors = builder.buffer(rank, BufferKind::optimizer, training.second_moment_dtype, Shape(layout.factors()));
      }
    }
    place(builder, ids, offsets, bucket, resident);
  }
}

void ChunkParameters::own_matrices(DagBuilder& builder, const std::vector<ParameterId>& ids,
                                   const std::vector<std::int64_t>& offsets, std::int64_t begin, const TrainingSpec& training,
                                   Bucket& bucket) const {
  const Buffer slice = builder.dag().buffers[bucket.gradient_slice];
  const std::int64_t end = begin + slice.shape.elements();
  std::vector<std::int64_t> places;  // in the slice, of which they fill the first `elements`
  std::int64_t elements = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (offsets[i] < begin || offsets[i] >= end) continue;
    std::int64_t place = offsets[i] - begin;
    for (const ParameterPiece& piece : specs_[ids[i]].pieces) {
      bucket.matrices.push_back({.piece = piece});
      places.push_back(place);
      place += piece.rows * piece.columns;
    }
    elements += elements_of(ids[i]);
  }
  if (elements == 0) return;
  bucket.master = builder.buffer(slice.rank, BufferKind::optimizer, training.master_dtype, Shape(elements));
  bucket.momentum = builder.buffer(slice.rank, BufferKind::optimizer, training.moment_dtype, Shape(elements));
  for (std::size_t i = 0; i < bucket.matrices.size(); ++i) {
    MuonMatrix& matrix = bucket.matrices[i];
    const auto view = [&](BufferId of) { return builder.view(of, places[i], Shape(matrix.piece.rows, matrix.piece.columns)); };
    matrix.gradient = view(bucket.gradient_slice);
    matrix.weight = view(bucket.weight_slice);
    matrix.master = view(bucket.master);
    matrix.momentum = view(bucket.momentum);
  }
}

void ChunkParameters::add_pieces(const std::vector<ParameterId>& ids, const std::vector<std::int64_t>& offsets,
                                 Bucket& bucket) const {
  std::set<std::string> tensors;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::int64_t offset = offsets[i];
    for (const ParameterPiece& piece : specs_[ids[i]].pieces) {
      if (piece.shared_rows == 0 && !tensors.insert(piece.tensor).second)
        throw std::logic_error("'" + piece.tensor + "' lies in a bucket in two blocks");
      bucket.pieces.push_back({.offset = offset,
                               .rows = piece.rows,
                               .columns = piece.columns,
                               .tensor_rows = piece.shared_rows > 0 ? piece.shared_rows : piece.tensor_rows,
                               .tensor_columns = piece.tensor_columns});
      offset += piece.rows * piece.columns;
    }
  }
}

void ChunkParameters::place(DagBuilder& builder, const std::vector<ParameterId>& ids, const std::vector<std::int64_t>& offsets,
                            Bucket bucket, const ResidentPart& resident) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const ParameterId id = ids[i];
    const ParameterSpec& spec = specs_[id];
    std::int64_t offset = offsets[i];
    placed_[id] = {.bucket = buckets_.size(), .offset = offset};
    if (!bucket.frozen) {
      placed_[id].gradient = builder.view(bucket.gradients, offset, Shape(spec.rows(), spec.columns()));
      bucket.uses += spec.uses;
    }
    for (const ParameterPiece& piece : spec.pieces) {
      add_shards(builder, resident, piece, offset, spec.frozen);
      offset += piece.rows * piece.columns;
    }
  }
  buckets_.push_back(bucket);
  bind(builder, buckets_.size() - 1, bucket.weights);
}

std::vector<BufferId> ChunkParameters::gradients_of(std::size_t bucket) const {
  std::vector<BufferId> gradients;
  for (const ParameterId id : members_[bucket]) gradients.push_back(placed_[id].gradient);
  return gradients;
}

void ChunkParameters::bind(DagBuilder& builder, std::size_t bucket, BufferId whole) {
  for (const ParameterId id : members_[bucket]) {
    const Shape shape(specs_[id].rows(), specs_[id].columns());
    placed_[id].weight = whole == no_id ? no_id : builder.view(whole, placed_[id].offset, shape);
  }
}

}  // namespace tandem::scenarios
