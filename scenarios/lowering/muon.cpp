#include "scenarios/lowering/muon.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <vector>

#include "runtime/contents/parameter_name.h"
#include "runtime/ops/muon.h"

namespace tandem::scenarios {
namespace {

/// Of the root mean square of a step, that of Adam's (Liu et al. 2025, section 2.2).
constexpr double rms_of_step = 0.2;

/// How a matrix lies on the ranks, and on which side its Gram matrix is.
struct Split {
  bool rows = false, columns = false;  ///< shared out
  bool gathered = false;               ///< before the products
  bool left = false;                   ///< A = X X^T
};

Split split_of(const ParameterPiece& piece) {
  Split split{.rows = piece.rows < piece.tensor_rows, .columns = piece.columns < piece.tensor_columns};
  const bool is_wide = piece.tensor_rows < piece.tensor_columns;
  split.gathered = split.rows && is_wide;
  split.left = split.columns || is_wide;
  return split;
}

/// What is orthogonalized by itself: the whole tensor, or the part of it that a rank holds here or in the sharded step.
ParameterPiece taken_whole(const Context& context, const ParameterPiece& piece) {
  ParameterPiece block = piece;
  const auto of_sharded = context.muon_blocks.find(piece.tensor);
  if (of_sharded != context.muon_blocks.end()) std::tie(block.rows, block.columns) = of_sharded->second;
  block.tensor_rows = block.rows;
  block.tensor_columns = block.columns;
  return block;
}

class MuonUpdate {
 public:
  MuonUpdate(Context& context, const Bucket& bucket, const MuonMatrix& matrix)
      : context_(context), matrix_(matrix), taken_(matrix.piece) {
    if (context.scenario.training.muon_tp == MuonTp::blockwise) taken_ = taken_whole(context, matrix.piece);
    split_ = split_of(taken_);
    const bool expert = bucket.kind == ParameterKind::expert;
    slot_ = expert ? Slot::expert_tensor : Slot::tp;
    shards_ = expert ? context.sizes.etp : context.sizes.tp;
    shard_ = expert ? context.sizes.etp_rank : context.sizes.tp_rank;
    const std::int64_t parts = split_.rows ? matrix.piece.tensor_rows / matrix.piece.rows : 1;
    copies_ = split_.rows ? shards_ / parts : 1;
  }

  void lower(BufferId norm) {
    const ParameterPiece& piece = matrix_.piece;
    const auto largest = static_cast<double>(std::max(taken_.tensor_rows, taken_.tensor_columns));
    const MuonAttributes attributes{.scale = static_cast<float>(rms_of_step * std::sqrt(largest * static_cast<double>(copies_)))};
    BufferId x = matrix(Shape(piece.rows, piece.columns));
    context_.kernel(OpKind::muon_momentum, attributes, "muon momentum", {matrix_.gradient, norm}, {x}, {matrix_.momentum});
    if (split_.gathered) x = gathered(x);
    x = taken_.rows < piece.rows         ? orthogonalized_by_rows(x)
        : taken_.columns < piece.columns ? orthogonalized_by_columns(x)
                                         : orthogonalized(x);
    if (split_.gathered) x = context_.builder.view(x, shard_ * piece.rows * piece.columns, Shape(piece.rows, piece.columns));
    context_.kernel(OpKind::muon_update, attributes, "muon", {x}, {matrix_.weight}, {matrix_.master});
  }

 private:
  Context& context_;
  const MuonMatrix& matrix_;
  ParameterPiece taken_;
  Split split_;
  Slot slot_ = Slot::tp;
  std::int64_t shards_ = 1, shard_ = 0;
  std::int64_t copies_ = 1;  ///< ranks that hold the same shard

  /// In the type of the products: bf16, but for training in fp32.
  DType type() const { return context_.scenario.training.precision == DType::f32 ? DType::f32 : DType::bf16; }
  BufferId matrix(const Shape& shape) { return context_.activation(shape, type()); }
  bool sums_over_shards() const { return (split_.rows || split_.columns) && !split_.gathered; }

  BufferId gathered(BufferId x) {
    const Shape shape = context_.shape_of(x);
    const BufferId whole = context_.gathered(Shape(shape[0] * shards_, shape[1]), type());
    context_.collective(OpKind::all_gather, slot_, Stream::tp, "muon", x, whole);
    return whole;
  }

  void add_up(BufferId sum) {
    if (sums_over_shards()) context_.collective(OpKind::all_reduce, slot_, Stream::tp, "muon", sum, sum);
  }

  BufferId orthogonalized(BufferId x) {
    x = normalized(x);
    for (int step = 0; step < newton_schulz_steps; ++step) x = iterated(x);
    return x;
  }

  // Block by block, in the reference alone.

  BufferId orthogonalized_by_rows(BufferId x) {
    const Shape shape = context_.shape_of(x), block(taken_.rows, shape[1]);
    const BufferId all = matrix(shape);
    for (std::int64_t first = 0; first < shape[0]; first += taken_.rows) {
      const BufferId one = orthogonalized(context_.builder.view(x, first * shape[1], block));
      context_.kernel(OpKind::scale, ScaleAttributes{1.0F}, "muon block", {one},
                      {context_.builder.view(all, first * shape[1], block)});
    }
    return all;
  }

  BufferId orthogonalized_by_columns(BufferId x) {
    const Shape shape = context_.shape_of(x);
    std::vector<BufferId> blocks, done;
    for (std::int64_t first = 0; first < shape[1]; first += taken_.columns)
      blocks.push_back(matrix(Shape(shape[0], taken_.columns)));
    context_.kernel(OpKind::split_columns, {}, "muon block", std::array{x}, blocks);
    for (const BufferId block : blocks) done.push_back(orthogonalized(block));
    const BufferId all = matrix(shape);
    context_.kernel(OpKind::join_columns, {}, "muon block", done, std::array{all});
    return all;
  }

  BufferId normalized(BufferId u) {
    const BufferId square = context_.activation(Shape(1), DType::f32), x = matrix(context_.shape_of(u));
    context_.kernel(OpKind::fill, ScaleAttributes{0.0F}, "muon norm", {}, {square});
    context_.kernel(OpKind::square_sum, ScaleAttributes{1.0F}, "muon norm", {u}, {}, {square});
    add_up(square);
    context_.kernel(OpKind::muon_normalize, {}, "muon norm", {u, square}, {x});
    return x;
  }

  BufferId iterated(BufferId x) {
    const Shape shape = context_.shape_of(x);
    const std::int64_t n = split_.left ? shape[0] : shape[1];
    const BufferId gram = matrix(Shape(n, n)), square = matrix(Shape(n, n)), polynomial = matrix(Shape(n, n)),
                   next = matrix(shape);
    const GemmAttributes with_itself{.transpose_a = !split_.left, .transpose_b = split_.left};
    context_.kernel(OpKind::gemm, with_itself, "newton-schulz", {x, x}, {gram});
    add_up(gram);
    context_.kernel(OpKind::gemm, GemmAttributes{}, "newton-schulz", {gram, gram}, {square});
    context_.kernel(OpKind::muon_polynomial, {}, "newton-schulz", {gram, square}, {polynomial});
    if (split_.left)
      context_.kernel(OpKind::gemm, GemmAttributes{}, "newton-schulz", {polynomial, x}, {next});
    else
      context_.kernel(OpKind::gemm, GemmAttributes{}, "newton-schulz", {x, polynomial}, {next});
    return next;
  }
};

}  // namespace

bool is_muon_matrix(const std::string& tensor) {
  return tensor.find('.') != std::string::npos && !is_vector(tensor) && !is_convolution(tensor) &&
         !tensor.ends_with("final_streams");
}

void update_by_muon(Context& context, const Bucket& bucket, const MuonMatrix& matrix, BufferId norm) {
  MuonUpdate(context, bucket, matrix).lower(norm);
}

}  // namespace tandem::scenarios
