#include "runtime/ops/sparse_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/ops/attention_mask.h"
#include "runtime/ops/sparse_sizes.h"
#include "runtime/ops/sum.h"

namespace tandem {
namespace {

void check_outputs(const SparseSizes& n, const Shape& out, const Shape& lse) {
  expect_shapes(out == Shape(n.queries, n.micro_batch, n.heads, columns_of(out)) && columns_of(out) <= n.width,
                "sparse_attention needs out [s,b,H,c], c within the key");
  expect_shapes(lse.elements() == n.micro_batch * n.heads * n.queries, "sparse_attention needs lse [b,H,s]");
}

double product(const float* a, const float* b, std::int64_t width) {
  return sum_of(width, [=](auto i) { return double{a[i]} * b[i]; });
}

Flops flops_per_depth(const SparseSizes& n, const SparseAttentionAttributes& attributes) {
  return 2.0 * static_cast<double>(n.micro_batch * n.heads) * static_cast<double>(chosen_pairs(attributes, n.most));
}

}  // namespace

namespace {

/// The sum over n in [0, last] of min(floor(n / ratio), most).
std::int64_t sum_of_quotients(std::int64_t last, std::int64_t ratio, std::int64_t most) {
  if (last < 0) return 0;
  const std::int64_t below = std::min(last, most * ratio - 1), quotient = below / ratio;
  return ratio * (quotient * (quotient - 1) / 2) + quotient * (below - quotient * ratio + 1) + most * (last - below);
}

/// Of each query min(positions up to its own, window) and as many compressed keys as it sees, at most those left.
std::int64_t pairs_with_compressed(const SparseAttentionAttributes& attributes, std::int64_t most) {
  std::int64_t pairs = 0;
  for (std::size_t run = 0; run < 2; ++run) {
    const std::int64_t first = attributes.queries.start[run], last = first + attributes.queries.length[run];  // of n = p + 1
    const auto add = [&](std::int64_t ratio, std::int64_t limit) {
      pairs += sum_of_quotients(last, ratio, limit) - sum_of_quotients(first, ratio, limit);
    };
    if (attributes.window > 0) add(1, attributes.window);
    if (most > attributes.window) add(attributes.ratio, most - attributes.window);
  }
  return pairs;
}

}  // namespace

// A window hides all but so many of the keys that a query sees: as many as it chooses.
std::int64_t chosen_pairs(const SparseAttentionAttributes& attributes, std::int64_t most) {
  if (attributes.window > 0 || attributes.ratio > 1) return pairs_with_compressed(attributes, most);
  const AttentionAttributes seen{
      .causal = true, .queries = attributes.queries, .keys = attributes.keys, .window = static_cast<std::int32_t>(most)};
  return seen_pairs(seen, attributes.queries.count(), attributes.keys.count());
}

OpCost sparse_attention_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto& attributes = std::get<SparseAttentionAttributes>(any);
  const auto [q, k, chosen, out, lse] = unpack<5>(operands, "sparse_attention");
  const SparseSizes n(q.shape, k.shape, chosen.shape, attributes);
  check_outputs(n, out.shape, lse.shape);
  return {.flops = flops_per_depth(n, attributes) * static_cast<double>(n.width + columns_of(out.shape)),
          .math = q.dtype,
          .bytes = bytes_of(q, k, chosen, out, lse)};
}

void sparse_attention_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<SparseAttentionAttributes>(any);
  const auto [q, k, chosen, out, lse] = unpack<5>(operands, "sparse_attention");
  const SparseSizes n(q.shape, k.shape, chosen.shape, attributes);
  check_outputs(n, out.shape, lse.shape);
  const std::int64_t value_width = columns_of(out.shape);
  std::vector<double> p;
  for (std::int64_t b = 0; b < n.micro_batch; ++b)
    for (std::int64_t query = 0; query < n.queries; ++query) {
      const std::span<const std::int32_t> keys = chosen_of(chosen, b, query);
      for (std::int64_t head = 0; head < n.heads; ++head) {
        const float* const row = q.f32() + n.query_row(b, query, head);
        p.clear();
        for (const std::int32_t key : keys) p.push_back(attributes.scale * product(row, k.f32() + n.key_row(b, key), n.width));
        const double largest = p.empty() ? 0 : *std::ranges::max_element(p);
        double sum = 0;
        for (double& one : p) sum += one = std::exp(one - largest);
        lse.f32()[(b * n.heads + head) * n.queries + query] =
            p.empty() ? -std::numeric_limits<float>::infinity() : static_cast<float>(largest + std::log(sum));
        float* const to = out.f32() + ((query * n.micro_batch + b) * n.heads + head) * value_width;
        for (std::int64_t e = 0; e < value_width; ++e) {
          double value = 0;
          for (std::size_t j = 0; j < keys.size(); ++j) value += p[j] * double{k.f32()[n.key_row(b, keys[j]) + e]};
          to[e] = p.empty() ? 0.0F : static_cast<float>(value / sum);
        }
      }
    }
}

OpCost sparse_attention_backward_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto& attributes = std::get<SparseAttentionAttributes>(any);
  const auto [q, k, chosen, out, lse, dout, dq, dk] = unpack<8>(operands, "sparse_attention_backward");
  const SparseSizes n(q.shape, k.shape, chosen.shape, attributes);
  check_outputs(n, out.shape, lse.shape);
  expect_shapes(dout.shape == out.shape && dq.shape == q.shape && dk.shape == k.shape,
                "sparse attention's gradients are shaped as what they belong to");
  return {.flops = flops_per_depth(n, attributes) * static_cast<double>(3 * n.width + 2 * columns_of(out.shape)),
          .math = q.dtype,
          .bytes = bytes_of(q, k, chosen, out, lse, dout, dq, dk)};
}

// As attention_backward: p = exp(scale q k^T - lse), ds = p (dout v - rowsum(dout * out)), and v is a part of k.
void sparse_attention_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<SparseAttentionAttributes>(any);
  const auto [q, k, chosen, out, lse, dout, dq, dk] = unpack<8>(operands, "sparse_attention_backward");
  const SparseSizes n(q.shape, k.shape, chosen.shape, attributes);
  check_outputs(n, out.shape, lse.shape);
  const std::int64_t value_width = columns_of(out.shape);
  std::fill_n(dq.f32(), q.shape.elements(), 0.0F);
  std::vector<double> sums(static_cast<std::size_t>(k.shape.elements()), 0.0);  // dk
  for (std::int64_t b = 0; b < n.micro_batch; ++b)
    for (std::int64_t query = 0; query < n.queries; ++query)
      for (std::int64_t head = 0; head < n.heads; ++head) {
        const std::int64_t place = n.query_row(b, query, head);
        const std::int64_t of_out = ((query * n.micro_batch + b) * n.heads + head) * value_width;
        const float *row = q.f32() + place, *d_o = dout.f32() + of_out;
        const double log_sum = lse.f32()[(b * n.heads + head) * n.queries + query];
        const double row_sum = product(d_o, out.f32() + of_out, value_width);
        for (const std::int32_t key : chosen_of(chosen, b, query)) {
          const float* const of_key = k.f32() + n.key_row(b, key);
          double* const to_key = sums.data() + n.key_row(b, key);
          const double p = std::exp(attributes.scale * product(row, of_key, n.width) - log_sum);
          const double ds = attributes.scale * p * (product(d_o, of_key, value_width) - row_sum);
          for (std::int64_t i = 0; i < n.width; ++i) {
            dq.f32()[place + i] += static_cast<float>(ds * of_key[i]);
            to_key[i] += ds * row[i];
          }
          for (std::int64_t e = 0; e < value_width; ++e) to_key[e] += p * d_o[e];
        }
      }
  std::ranges::transform(sums, dk.f32(), [](double sum) { return static_cast<float>(sum); });
}

}  // namespace tandem
