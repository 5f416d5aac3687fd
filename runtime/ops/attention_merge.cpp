#include "runtime/ops/attention_merge.h"

#include <algorithm>
#include <cmath>

#include "runtime/ops/operands.h"

namespace tandem {
namespace {

void check_shapes(const Shape& part, const Shape& part_lse, const Shape& out, const Shape& lse) {
  expect_shapes(part == out && part_lse == lse, "attention_merge needs parts shaped as what they join");
  expect_shapes(lse.elements() == out[0] * out[1] * out[2], "attention_merge needs out [s,b,H,d] and lse [b,H,s]");
}

/// How much each side weighs in the sum, and its logarithm.
struct Weights {
  float keep = 1, take = 0, log_sum = 0;

  Weights(float kept, float taken) : log_sum(std::max(kept, taken)) {
    if (std::isinf(log_sum)) return;  // neither side sees a key
    const float a = std::exp(kept - log_sum), b = std::exp(taken - log_sum);
    keep = a / (a + b);
    take = b / (a + b);
    log_sum += std::log(a + b);
  }
};

}  // namespace

OpCost attention_merge_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [part, part_lse, out, lse] = unpack<4>(operands, "attention_merge");
  check_shapes(part.shape, part_lse.shape, out.shape, lse.shape);
  return memory_cost(bytes_of(part, part_lse) + 2 * bytes_of(out, lse));
}

void attention_merge_host(std::span<const HostTensor> operands, const OpAttributes&) {
  const auto [part, part_lse, out, lse] = unpack<4>(operands, "attention_merge");
  check_shapes(part.shape, part_lse.shape, out.shape, lse.shape);
  const std::int64_t queries = out.shape[0], heads = out.shape[1] * out.shape[2], width = out.shape[3];
  for (std::int64_t head = 0; head < heads; ++head)
    for (std::int64_t query = 0; query < queries; ++query) {
      float& log_sum = lse.f32()[head * queries + query];
      const Weights weights(log_sum, part_lse.f32()[head * queries + query]);
      log_sum = weights.log_sum;
      float* to = out.f32() + (query * heads + head) * width;
      const float* from = part.f32() + (query * heads + head) * width;
      for (std::int64_t e = 0; e < width; ++e) to[e] = weights.keep * to[e] + weights.take * from[e];
    }
}

}  // namespace tandem
