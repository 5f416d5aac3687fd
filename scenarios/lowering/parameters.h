#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/dag/dag_builder.h"
#include "scenarios/lowering/ownership.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

using ParameterId = std::uint32_t;

/// One block of an unsharded tensor that a rank holds, in the order of the local buffer's rows.
struct ParameterPiece {
  std::string tensor;
  std::int64_t tensor_rows = 0, tensor_columns = 0;
  std::int64_t row = 0, column = 0, rows = 0, columns = 0;
  std::int64_t shared_rows = 0;  ///< of which tensor-parallel ranks each hold a part; 0: all of the tensor's
};

/// Parameters whose gradients need more than the data-parallel reduction lie in buckets of their own, so that all who share
/// them slice them alike.
enum class ParameterKind : std::uint8_t {
  sharded,     ///< each tensor-parallel rank holds its own part
  replicated,  ///< every tensor-parallel rank holds the whole; under sp each sees a part of the tokens (norms)
  by_heads,    ///< every tensor-parallel rank holds the whole, and sees its own heads alone (norms of queries and keys)
  shared_kv,   ///< tensor-parallel ranks that hold the same key-value head each see a part of its queries
  expert,      ///< reduced over the ranks that hold the same experts alone
  tied,        ///< the token table that the first stage shares with the last, or with that of further predictions
};

/// A parameter of one model chunk on one rank: `columns` wide, its pieces below each other.
struct ParameterSpec {
  ParameterKind kind = ParameterKind::sharded;
  std::vector<ParameterPiece> pieces;
  int uses = 1;           ///< operations that add to its gradient in one backward pass
  double norm_share = 1;  ///< its weight in the gradient norm: 1 / (ranks that count the same elements)
  std::size_t unit = 0;   ///< set by `declare`
  bool narrow = false;    ///< kept in fp8 or fp4, see `keep_narrow`
  bool frozen = false;    ///< never updated

  std::int64_t rows() const;
  std::int64_t columns() const { return pieces.front().columns; }
};

/// A matrix that Muon updates on this rank: it owns it, whole or its shard of it.
struct MuonMatrix {
  ParameterPiece piece;
  BufferId gradient = no_id, weight = no_id, master = no_id, momentum = no_id;  ///< [rows, columns] of the piece
};

/// A run of parameters that is reduced, updated and gathered in one go. From ZeRO-1 on each data-parallel rank owns the slice of
/// its place; without, the slice is the whole. From ZeRO-2 on only the slice of the reduced gradient lives for the whole step;
/// the gradients themselves live from the chunk's first backward to their reduction. With ZeRO-3 the weights, too, are a slice
/// of their own, gathered into a buffer that `ChunkParameters::bind` puts in their place.
///
/// `training.offload.optimizer` keeps the states of the first elements of the slice in the memory of the host; `master`,
/// `momentum` and `variance` are those of the rest, `no_id` where there is none.
struct Bucket {
  ParameterKind kind = ParameterKind::sharded;
  double norm_share = 1;
  bool narrow = false;  ///< see `TrainingSpec::param_gather`
  bool frozen = false;  ///< weights alone: no gradients, nothing to reduce, to update or to gather but under ZeRO-3
  BufferId weights = no_id, gradients = no_id;
  /// Of narrow weights that are gathered in bf16: what is gathered, and then cast into `weights`.
  BufferId gathered = no_id;
  BufferId weight_slice = no_id, gradient_slice = no_id;
  BufferId master = no_id, momentum = no_id, variance = no_id;
  struct OnHost {
    std::int64_t elements = 0;
    BufferId gradient = no_id, weight = no_id;  ///< what is copied there, and back
    BufferId master = no_id, momentum = no_id, variance = no_id;
  };
  OnHost on_host = {};
  int uses = 0;          ///< gradient contributions per backward pass
  std::size_t unit = 0;  ///< with ZeRO-3: the only unit of its parameters
  Shape whole;           ///< all slices
  /// Of a bucket that Muon updates: no matrix lies in two slices. The states lie as the slice does, without the padding at its
  /// end; there is no variance.
  std::vector<MuonMatrix> matrices = {};
  std::vector<AdafactorPiece> pieces = {};  ///< of all owners, where Adafactor updates
  BufferId factors = no_id;                 ///< of the whole bucket, where it keeps no variance (runtime/ops/adafactor.h)
};

/// The part [begin, end) of a bucket's weights that lives on this rank for the whole step, in `buffer`.
struct ResidentPart {
  BufferId buffer = no_id;
  std::int64_t begin = 0, end = 0;
};

/// The parameters of one model chunk on one rank, declared in forward order and laid out in backward order, so that buckets
/// fill up one after the other during the backward pass.
class ChunkParameters {
 public:
  /// What is declared from here on belongs to a new unit, that ZeRO-3 gathers in one go: a layer, the embedding, the head.
  std::size_t begin_unit() { return unit_ = units_++; }
  ParameterId declare(ParameterSpec spec);
  /// Declares a router's biases, which no optimizer updates (see expert_bias.h). Returns their number in the chunk.
  std::size_t declare_expert_bias(std::string tensor);
  const std::vector<std::string>& expert_biases() const { return expert_biases_; }
  /// Says that the weight, of a linear layer, is kept in the type that training casts to: `training.param_gather`.
  void keep_narrow(ParameterId id) { specs_[id].narrow = true; }
  /// The id of what is declared next; and says that what was declared from it on is never updated.
  ParameterId next() const { return static_cast<ParameterId>(specs_.size()); }
  void freeze_from(ParameterId first) {
    for (; first < specs_.size(); ++first) specs_[first].frozen = true;
  }

  /// Allocates buckets of at least `training.bucket_parameters` parameters each, or with ZeRO-3 one per unit or, with
  /// `gather_unit` weight, per weight, and all their buffers. Slices are padded to multiples of the granularity.
  /// `dense` and `expert`: what this rank owns of the buckets without and with experts.
  void allocate(DagBuilder& builder, RankIndex rank, const TrainingSpec& training, const ParallelismSpec& parallelism,
                const Ownership& dense, const Ownership& expert = {});

  /// ZeRO-3: the weights of the bucket are in `whole` from now on; `no_id`: nowhere.
  void bind(DagBuilder& builder, std::size_t bucket, BufferId whole);

  /// Throws std::logic_error while the weight is not gathered.
  BufferId weight(ParameterId id) const;
  BufferId gradient(ParameterId id) const { return placed_[id].gradient; }
  /// Those of a bucket's parameters, in the order in which they lie in it, one right after the other.
  std::vector<BufferId> gradients_of(std::size_t bucket) const;
  std::size_t bucket_of(ParameterId id) const { return placed_[id].bucket; }
  std::size_t unit_of(ParameterId id) const { return specs_[id].unit; }
  std::size_t units() const { return units_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }

 private:
  struct Placed {
    BufferId weight = no_id, gradient = no_id;
    std::size_t bucket = 0;
    std::int64_t offset = 0;  ///< in the bucket
  };
  std::vector<ParameterSpec> specs_;
  std::vector<Placed> placed_;
  std::vector<Bucket> buckets_;

  std::vector<std::string> expert_biases_;
  std::size_t unit_ = 0, units_ = 0;
  std::vector<std::vector<ParameterId>> members_;  ///< by bucket

  std::vector<bool> apart_;  ///< by parameter: a matrix that the optimizer treats unlike other parameters

  std::int64_t elements_of(ParameterId id) const { return specs_[id].rows() * specs_[id].columns(); }
  /// `keeps_whole`: matrices that the optimizer treats apart lie whole in slices. `dense`, `expert`: owners of these.
  std::vector<std::vector<ParameterId>> fill_buckets(std::int64_t bucket_parameters, bool keeps_whole, std::int64_t dense = 1,
                                                     std::int64_t expert = 1) const;
  std::vector<std::vector<ParameterId>> one_bucket_per_unit() const;
  std::vector<std::vector<ParameterId>> one_bucket_per_weight() const;
  void place(DagBuilder& builder, const std::vector<ParameterId>& ids, const std::vector<std::int64_t>& offsets, Bucket bucket,
             const ResidentPart& resident);
  /// Sets the matrices that lie in the slice which begins there, and their states.
  void own_matrices(DagBuilder& builder, const std::vector<ParameterId>& ids, const std::vector<std::int64_t>& offsets,
                    std::int64_t begin, const TrainingSpec& training, Bucket& bucket) const;
  /// Sets the blocks of tensors that Adafactor updates.
  void add_pieces(const std::vector<ParameterId>& ids, const std::vector<std::int64_t>& offsets, Bucket& bucket) const;
};

}  // namespace tandem::scenarios
