#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {

/// A bucket's gradients, whole on this rank, to be added up over the ranks that share its weights.
struct BucketGradients {
  std::size_t chunk = 0;
  ParameterKind kind = ParameterKind::sharded;
  BufferId all = no_id;           ///< without padding
  std::vector<BufferId> tensors;  ///< one matrix for each parameter, one after the other in `all`
};

/// Adds gradients up over data-parallel ranks in some compressed form (`training.compressor`):
///
///   top-k      compress_top_k.cpp: the largest, with their places, are gathered on all ranks
///   one-bit    compress_one_bit.cpp: signs, in two rounds
///   powersgd   compress_powersgd.cpp: factors of low rank, in two rounds
///
/// What a rank holds back is its residual: it lives from step to step, counts as gradients in the memory report, and is added to
/// the gradients of the next step. In every step, with y the sum as all ranks receive it,
///
///   y + sum over ranks of residuals after the step = sum over ranks of (gradients + residuals before the step)
///
/// Before the step that is lowered residuals are zero.
class Compressor {
 public:
  explicit Compressor(Context& context) : context_(context) {}
  virtual ~Compressor() = default;
  Compressor(const Compressor&) = delete;

  /// Lowers the compression and the first exchange, which runs beside the passes.
  virtual void send(const BucketGradients& bucket) = 0;
  /// Lowers the rest for all buckets, so that they hold the sums: after the last backward, as compute would otherwise wait for
  /// the exchange.
  virtual void receive() = 0;
  /// Adds the residuals of all ranks to the sums, which makes the exact ones of them.
  void restore();

 protected:
  Context& context_;

  /// Makes what a rank holds back of `gradients`, which are to be its own.
  BufferId residual_of(const BucketGradients& bucket, BufferId gradients);
  /// Makes what it holds back of the sum's elements from `first` on, as their owner. Elements beyond the end are padding.
  BufferId residual_of_sum(const BucketGradients& bucket, std::int64_t first, std::int64_t elements);

  BufferId exchanged(DType dtype, const Shape& shape) { return context_.gathered(shape, dtype); }
  DType type_of_gradients() const { return context_.scenario.training.grad_dtype; }
  void collect(OpKind op, const BucketGradients& bucket, BufferId in, BufferId out);
  PlaceInGroup place(const BucketGradients& bucket) const;

 private:
  struct Residual {
    ParameterKind kind;
    BufferId gradients, held_back;
    std::int64_t first;  ///< of `gradients`, that is held back
  };
  std::vector<Residual> residuals_;

  BufferId state(const Shape& shape);
};

/// Returns none where gradients are reduced as they are, or cast.
std::unique_ptr<Compressor> make_compressor(Context& context);

std::unique_ptr<Compressor> make_top_k(Context& context);
std::unique_ptr<Compressor> make_one_bit(Context& context);
std::unique_ptr<Compressor> make_powersgd(Context& context);

}  // namespace tandem::scenarios
