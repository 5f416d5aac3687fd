#include "runtime/ops/attention_sink.h"

#include <algorithm>
#include <cmath>

#include "runtime/ops/operands.h"
#include "runtime/ops/sum.h"

namespace tandem {
namespace {

void check_shapes(const Shape& sink, const Shape& out, const Shape& lse) {
  expect_shapes(out.rank == 4 && sink == Shape(out[2], 1), "attention_sink needs out [s,b,H,e] and sink [H,1]");
  expect_shapes(lse.elements() == out[0] * out[1] * out[2], "attention_sink needs lse [b,H,s]");
}

}  // namespace

OpCost attention_sink_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [sink, out, lse] = unpack<3>(operands, "attention_sink");
  check_shapes(sink.shape, out.shape, lse.shape);
  return memory_cost(sink.bytes() + 2 * bytes_of(out, lse));
}

void attention_sink_host(std::span<const HostTensor> operands, const OpAttributes&) {
  const auto [sink, out, lse] = unpack<3>(operands, "attention_sink");
  check_shapes(sink.shape, out.shape, lse.shape);
  const std::int64_t queries = out.shape[0], batch = out.shape[1], heads = out.shape[2], width = out.shape[3];
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t head = 0; head < heads; ++head)
      for (std::int64_t query = 0; query < queries; ++query) {
        float& log_sum = lse.f32()[(b * heads + head) * queries + query];
        const float score = sink.f32()[head], largest = std::max(log_sum, score);
        const float joint = largest + std::log(std::exp(log_sum - largest) + std::exp(score - largest));
        const float share = std::exp(log_sum - joint);
        log_sum = joint;
        float* const to = out.f32() + ((query * batch + b) * heads + head) * width;
        for (std::int64_t e = 0; e < width; ++e) to[e] *= share;
      }
}

OpCost attention_sink_backward_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [sink, out, lse, dout, dsink] = unpack<5>(operands, "attention_sink_backward");
  check_shapes(sink.shape, out.shape, lse.shape);
  expect_shapes(dout.shape == out.shape && dsink.shape == sink.shape, "a sink's gradients are shaped as what they belong to");
  return memory_cost(bytes_of(sink, out, lse, dout) + 2 * dsink.bytes());
}

void attention_sink_backward_host(std::span<const HostTensor> operands, const OpAttributes&) {
  const auto [sink, out, lse, dout, dsink] = unpack<5>(operands, "attention_sink_backward");
  check_shapes(sink.shape, out.shape, lse.shape);
  const std::int64_t queries = out.shape[0], batch = out.shape[1], heads = out.shape[2], width = out.shape[3];
  for (std::int64_t head = 0; head < heads; ++head) {
    const auto of_pair = [&](std::int64_t pair) {
      const std::int64_t query = pair / batch, b = pair % batch, row = (pair * heads + head) * width;
      const float *o = out.f32() + row, *d_o = dout.f32() + row;
      const double product = sum_of(width, [=](auto e) { return double{o[e]} * d_o[e]; });
      return product * std::exp(double{sink.f32()[head]} - lse.f32()[(b * heads + head) * queries + query]);
    };
    dsink.f32()[head] -= static_cast<float>(sum_of(queries * batch, of_pair));
  }
}

}  // namespace tandem
