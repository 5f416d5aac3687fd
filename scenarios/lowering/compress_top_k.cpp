// Top-k sparsification (Aji and Heafield 2017, arXiv 1704.05021; Lin et al. 2018, arXiv 1712.01887): of each bucket one gradient
// in `training.compressor.ratio` travels, those of the largest magnitudes, with an int32 index each. Every rank gathers the
// selections of all n ranks and adds them up:
//
//   sent by a rank: k (size of a gradient + 4) (n - 1) bytes, k = elements / ratio rounded up
//
// which exceeds what an all-reduce sends as soon as n > 2 ratio size / (size + 4): selections of different ranks differ.

#include <algorithm>
#include <cmath>

#include "scenarios/lowering/compressor.h"

namespace tandem::scenarios {
namespace {

/// Elements that are selected from at once, so that an index fits into an int32.
constexpr std::int64_t most_indexed = std::int64_t{1} << 30;

class TopK final : public Compressor {
 public:
  using Compressor::Compressor;

  void send(const BucketGradients& bucket) override {
    const std::int64_t elements = context_.shape_of(bucket.all).elements(), members = place(bucket).of;
    const BufferId residual = residual_of(bucket, bucket.all);
    for (std::int64_t first = 0; first < elements; first += most_indexed) {
      const Shape piece(std::min(most_indexed, elements - first));
      const double share = static_cast<double>(piece.elements()) / context_.scenario.training.compressor.ratio;
      const auto selected = std::max<std::int64_t>(1, std::llround(std::ceil(share)));
      const BufferId gradients = context_.builder.view(bucket.all, first, piece);
      const BufferId values = exchanged(type_of_gradients(), Shape(selected));
      const BufferId indices = exchanged(DType::i32, Shape(selected));
      context_.kernel(OpKind::top_k_select, {}, "compress gradients", {gradients}, {values, indices},
                      {context_.builder.view(residual, first, piece)});
      const BufferId all_values = exchanged(type_of_gradients(), Shape(members, selected));
      const BufferId all_indices = exchanged(DType::i32, Shape(members, selected));
      collect(OpKind::all_gather, bucket, values, all_values);
      collect(OpKind::all_gather, bucket, indices, all_indices);
      sent_.push_back({bucket.chunk, all_values, all_indices, gradients});
    }
  }

  void receive() override {
    for (const auto& [chunk, values, indices, gradients] : sent_) {
      context_.chunk = static_cast<std::int16_t>(chunk);
      context_.kernel(OpKind::sparse_sum, {}, "decompress gradients", {values, indices}, {gradients});
    }
  }

 private:
  struct Sent {
    std::size_t chunk;
    BufferId values, indices, gradients;
  };
  std::vector<Sent> sent_;
};

}  // namespace

std::unique_ptr<Compressor> make_top_k(Context& context) { return std::make_unique<TopK>(context); }

}  // namespace tandem::scenarios
