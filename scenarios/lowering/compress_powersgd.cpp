// PowerSGD (Vogels et al. 2019, arXiv 1905.13727, algorithms 1 and 2;
// torch/distributed/algorithms/ddp_comm_hooks/powerSGD_hook.py). Of each matrix M [n, m] of gradients, the residual added,
// factors of rank r travel, with all-reduces that add up:
//
//   1. P = M Q [n, r]; all-reduce P
//   2. orthogonalise P; Q = M^T P [m, r]; all-reduce Q
//   3. the sum of all ranks is taken for P Q^T, that is P P^T sum(M); each keeps M - P Q^T / ranks
//
// Q begins with what it was in the step before, in the first with the same noise on all ranks. What gains nothing, vectors and
// matrices with r (n + m) >= n m, is reduced as it is, in one all-reduce for a bucket.
//
//   sent by a rank: as an all-reduce of r (n + m) elements

#include "scenarios/lowering/compressor.h"

namespace tandem::scenarios {
namespace {

class PowerSgd final : public Compressor {
 public:
  using Compressor::Compressor;

  void send(const BucketGradients& bucket) override {
    Sent sent{.bucket = bucket};
    std::vector<Run> rest;
    std::int64_t offset = 0;
    for (const BufferId tensor : bucket.tensors) {
      const Shape shape = context_.shape_of(tensor);
      if (gains(shape)) {
        sent.matrices.push_back({.gradient = tensor, .sum = residual_of(bucket, tensor)});
      } else if (!rest.empty() && rest.back().first + rest.back().elements == offset) {
        rest.back().elements += shape.elements();
      } else {
        rest.push_back({offset, shape.elements()});
      }
      offset += shape.elements();
    }
    factor(sent);
    if (!rest.empty()) send_uncompressed(sent, rest);
    sent_.push_back(std::move(sent));
  }

  void receive() override {
    for (Sent& sent : sent_) send_second_factor(sent);
    for (const Sent& sent : sent_) multiply(sent);
  }

 private:
  /// Elements of a bucket on end.
  struct Run {
    std::int64_t first, elements;
  };
  struct Matrix {
    BufferId gradient = no_id;
    BufferId sum = no_id;  ///< of the gradient and the residual, and the residual then
    BufferId p = no_id, q = no_id;
  };
  struct Copy {
    BufferId gradient, packed;
  };
  struct Sent {
    BucketGradients bucket;
    std::vector<Matrix> matrices = {};
    BufferId q = no_id;  ///< of all matrices
    std::vector<Copy> uncompressed = {};
  };
  std::vector<Sent> sent_;
  std::int64_t factors_ = 0;

  std::int64_t rank() const { return context_.scenario.training.compressor.rank; }
  bool gains(const Shape& m) const { return rank() * (m[0] + m[1]) < m.elements(); }

  void factor(Sent& sent) {
    if (sent.matrices.empty()) return;
    std::int64_t rows = 0, columns = 0;
    for (const Matrix& matrix : sent.matrices) {
      const Shape m = context_.shape_of(matrix.gradient);
      rows += m[0];
      columns += m[1];
    }
    const BufferId p = exchanged(type_of_gradients(), Shape(rows, rank()));
    sent.q = context_.builder.buffer(context_.rank, BufferKind::gradient, type_of_gradients(), Shape(columns, rank()));
    context_.builder.dag().inputs.push_back(
        {.buffer = sent.q, .content = InputShard::Content::noise, .first_sequence = factors_++});
    rows = columns = 0;
    for (Matrix& matrix : sent.matrices) {
      const Shape m = context_.shape_of(matrix.gradient);
      matrix.p = context_.builder.view(p, rows * rank(), Shape(m[0], rank()));
      matrix.q = context_.builder.view(sent.q, columns * rank(), Shape(m[1], rank()));
      context_.kernel(OpKind::add, {}, "compress gradients", {matrix.sum, matrix.gradient}, {matrix.sum});
      context_.kernel(OpKind::gemm, GemmAttributes{}, "compress gradients", {matrix.sum, matrix.q}, {matrix.p});
      rows += m[0];
      columns += m[1];
    }
    collect(OpKind::all_reduce, sent.bucket, p, p);
  }

  /// In place where it is of one piece.
  void send_uncompressed(Sent& sent, const std::vector<Run>& runs) {
    const auto view = [&](BufferId of, std::int64_t first, std::int64_t elements) {
      return context_.builder.view(of, first, Shape(elements));
    };
    if (runs.size() == 1) {
      const BufferId only = view(sent.bucket.all, runs.front().first, runs.front().elements);
      return collect(OpKind::all_reduce, sent.bucket, only, only);
    }
    std::int64_t elements = 0;
    for (const Run& run : runs) elements += run.elements;
    const BufferId packed = exchanged(type_of_gradients(), Shape(elements));
    std::int64_t offset = 0;
    for (const auto& [first, count] : runs) {
      sent.uncompressed.push_back({view(sent.bucket.all, first, count), view(packed, offset, count)});
      copy("pack gradients", sent.uncompressed.back().gradient, sent.uncompressed.back().packed);
      offset += count;
    }
    collect(OpKind::all_reduce, sent.bucket, packed, packed);
  }

  void copy(std::string_view name, BufferId from, BufferId to) {
    context_.kernel(OpKind::scale, ScaleAttributes{1.0F}, name, {from}, {to});
  }

  void send_second_factor(const Sent& sent) {
    context_.chunk = static_cast<std::int16_t>(sent.bucket.chunk);
    for (const Matrix& matrix : sent.matrices) {
      context_.kernel(OpKind::orthogonalize, {}, "orthogonalize gradients", {}, {}, {matrix.p});
      context_.kernel(OpKind::gemm, GemmAttributes{.transpose_a = true}, "compress gradients", {matrix.sum, matrix.p},
                      {matrix.q});
    }
    if (sent.q != no_id) collect(OpKind::all_reduce, sent.bucket, sent.q, sent.q);
  }

  void multiply(const Sent& sent) {
    context_.chunk = static_cast<std::int16_t>(sent.bucket.chunk);
    const float share = -1.0F / static_cast<float>(place(sent.bucket).of);
    for (const auto& [gradient, sum, p, q] : sent.matrices) {
      const BufferId own = exchanged(type_of_gradients(), context_.shape_of(q));
      context_.kernel(OpKind::gemm, GemmAttributes{.transpose_b = true}, "decompress gradients", {p, q}, {gradient});
      context_.kernel(OpKind::scale, ScaleAttributes{share}, "decompress gradients", {q}, {own});
      context_.kernel(OpKind::gemm, GemmAttributes{.transpose_b = true, .accumulate = true}, "decompress gradients", {p, own}, {},
                      {sum});
    }
    for (const auto& [gradient, packed] : sent.uncompressed) copy("unpack gradients", packed, gradient);
  }
};

}  // namespace

std::unique_ptr<Compressor> make_powersgd(Context& context) { return std::make_unique<PowerSgd>(context); }

}  // namespace tandem::scenarios
