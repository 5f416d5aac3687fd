// One-bit compression in two rounds, DeepSpeed's compressed all-reduce (Tang et al. 2021, arXiv 2102.02888, figure 3;
// deepspeed/runtime/comm/nccl.py). A bucket has a part for each of the n ranks:
//
//   1. Each rank compresses its gradients to signs and a mean magnitude for each part (runtime/ops/sign.h) and sends every part
//   to
//      its owner: all-to-all.
//   2. The owner adds the parts up, compresses the sum, and sends it to all: all-gather.
//
// What the compression takes away stays with whoever compressed, in a residual of a whole bucket and one of a part. Parts are
// multiples of 8 elements, so that they begin with a byte.
//
//   sent by a rank: 2 (n - 1) / n (elements / 8 + 4 n) bytes

#include <algorithm>

#include "runtime/base/divide_up.h"
#include "scenarios/lowering/compressor.h"

namespace tandem::scenarios {
namespace {

constexpr std::int64_t signs_of_byte = 8;

class OneBit final : public Compressor {
 public:
  using Compressor::Compressor;

  void send(const BucketGradients& bucket) override {
    const std::int64_t elements = context_.shape_of(bucket.all).elements();
    const auto [members, own] = place(bucket);
    const std::int64_t bytes = divide_up(divide_up(elements, members), signs_of_byte), part = bytes * signs_of_byte;
    const Shape all_signs(members, bytes), all_scales(members);
    Sent& sent = sent_.emplace_back(Sent{.bucket = bucket,
                                         .received = {exchanged(DType::u8, all_signs), exchanged(DType::f32, all_scales)},
                                         .part = part,
                                         .own = std::clamp<std::int64_t>(elements - own * part, 0, part),
                                         .residual = no_id});
    const Signs signs{exchanged(DType::u8, all_signs), exchanged(DType::f32, all_scales)};
    context_.kernel(OpKind::sign_compress, SignAttributes{elements}, "compress gradients", {bucket.all},
                    {signs.bits, signs.scales}, {residual_of(bucket, bucket.all)});
    sent.residual = residual_of_sum(bucket, own * part, part);
    collect(OpKind::all_to_all, bucket, signs.bits, sent.received.bits);
    collect(OpKind::all_to_all, bucket, signs.scales, sent.received.scales);
  }

  void receive() override {
    for (Sent& sent : sent_) add_up(sent);
    for (const Sent& sent : sent_) {
      context_.chunk = static_cast<std::int16_t>(sent.bucket.chunk);
      context_.kernel(OpKind::sign_expand, {}, "decompress gradients", {sent.received.bits, sent.received.scales},
                      {sent.bucket.all});
    }
  }

 private:
  struct Signs {
    BufferId bits = no_id, scales = no_id;
  };
  struct Sent {
    BucketGradients bucket;
    Signs received;
    std::int64_t part, own;  ///< elements of a part, and those that are there of this rank's
    BufferId residual;
  };
  std::vector<Sent> sent_;

  void add_up(Sent& sent) {
    context_.chunk = static_cast<std::int16_t>(sent.bucket.chunk);
    const std::int64_t members = place(sent.bucket).of, bytes = sent.part / signs_of_byte;
    const BufferId sum = exchanged(type_of_gradients(), Shape(sent.part));
    context_.kernel(OpKind::sign_sum, {}, "add up gradients", {sent.received.bits, sent.received.scales}, {sum});
    const Signs own{exchanged(DType::u8, Shape(1, bytes)), exchanged(DType::f32, Shape(1))};
    context_.kernel(OpKind::sign_compress, SignAttributes{sent.own}, "compress gradients", {sum}, {own.bits, own.scales},
                    {sent.residual});
    sent.received = {exchanged(DType::u8, Shape(members, bytes)), exchanged(DType::f32, Shape(members))};
    collect(OpKind::all_gather, sent.bucket, own.bits, sent.received.bits);
    collect(OpKind::all_gather, sent.bucket, own.scales, sent.received.scales);
  }
};

}  // namespace

std::unique_ptr<Compressor> make_one_bit(Context& context) { return std::make_unique<OneBit>(context); }

}  // namespace tandem::scenarios
