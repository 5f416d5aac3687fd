#include "runtime/ops/attention.h"

#include <algorithm>

#include "runtime/ops/attention_mask.h"
#include "runtime/ops/attention_sizes.h"
#include "runtime/ops/documents.h"

namespace tandem {
namespace {

/// min(1, limit) + min(2, limit) + ... + min(last, limit)
std::int64_t sum_of_capped_integers(std::int64_t last, std::int64_t limit) {
  if (last <= 0) return 0;
  const std::int64_t rising = std::min(last, limit);
  return rising * (rising + 1) / 2 + (last - rising) * limit;
}

/// A query at position p sees min(p - first key + 1, keys) of the keys, or none if that is negative.
std::int64_t pairs_of_runs(std::int64_t query, std::int64_t queries, std::int64_t key, std::int64_t keys) {
  const std::int64_t seen_by_first = query - key + 1;
  return sum_of_capped_integers(seen_by_first + queries - 1, keys) - sum_of_capped_integers(seen_by_first - 1, keys);
}

/// Pairs of two runs in which the query sees the key.
std::int64_t masked_pairs_of_runs(const AttentionMask& mask, std::int64_t query, std::int64_t queries, std::int64_t key,
                                  std::int64_t keys) {
  const auto in_window = [&](std::int64_t first_query, std::int64_t count, std::int64_t first_key, std::int64_t key_count) {
    const std::int64_t causal = pairs_of_runs(first_query, count, first_key, key_count);
    return mask.window == 0 ? causal : causal - pairs_of_runs(first_query - mask.window, count, first_key, key_count);
  };
  if (mask.chunk == 0) return in_window(query, queries, key, keys);
  std::int64_t pairs = 0;
  for (std::int64_t first = query / mask.chunk * mask.chunk; first < query + queries; first += mask.chunk) {
    const std::int64_t first_query = std::max(first, query), first_key = std::max(first, key);
    const std::int64_t end_query = std::min(first + mask.chunk, query + queries),
                       end_key = std::min(first + mask.chunk, key + keys);
    if (end_key > first_key) pairs += in_window(first_query, end_query - first_query, first_key, end_key - first_key);
  }
  return pairs;
}

/// FLOPs of a product of depth 1 over all pairs of a query and a key that it sees.
Flops flops_per_depth(const AttentionSizes& sizes, const AttentionAttributes& attributes) {
  const std::int64_t pairs = seen_pairs_of_batch(attributes, sizes.queries, sizes.keys, sizes.micro_batch);
  return 2.0 * static_cast<double>(sizes.heads) * static_cast<double>(pairs);
}

}  // namespace

std::int64_t seen_pairs(const AttentionAttributes& attributes, std::int64_t queries, std::int64_t keys) {
  if (!attributes.causal) return queries * keys;
  const Positions &q = attributes.queries, &k = attributes.keys;
  std::int64_t pairs = 0;
  for (std::size_t i = 0; i < q.start.size(); ++i)
    for (std::size_t j = 0; j < k.start.size(); ++j)
      pairs += masked_pairs_of_runs(mask_of(attributes), q.start[i], q.length[i], k.start[j], k.length[j]);
  return pairs;
}

std::int64_t seen_pairs_of_runs(const AttentionAttributes& attributes, std::int64_t query, std::int64_t queries, std::int64_t key,
                                std::int64_t keys) {
  return attributes.causal ? masked_pairs_of_runs(mask_of(attributes), query, queries, key, keys) : queries * keys;
}

std::int64_t seen_pairs_of_batch(const AttentionAttributes& attributes, std::int64_t queries, std::int64_t keys,
                                 std::int64_t sequences) {
  if (attributes.documents.starts.empty()) return sequences * seen_pairs(attributes, queries, keys);
  std::int64_t pairs = 0;
  for (const DocumentBlock& block : document_blocks(attributes, sequences)) pairs += block.pairs;
  return pairs;
}

OpCost attention_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto& attributes = std::get<AttentionAttributes>(any);
  const auto [q, k, v, out, lse] = unpack<5>(operands, "attention");
  const AttentionSizes sizes(q.shape, k.shape, v.shape, out.shape, lse.shape, attributes);
  return {.flops = flops_per_depth(sizes, attributes) * static_cast<double>(sizes.head_dim + sizes.value_dim),
          .math = q.dtype,
          .bytes = bytes_of(q, k, v, out, lse)};
}

OpCost attention_backward_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto& attributes = std::get<AttentionAttributes>(any);
  const auto [q, k, v, out, lse, dout, dq, dk, dv] = unpack<9>(operands, "attention_backward");
  const AttentionSizes sizes(q.shape, k.shape, v.shape, out.shape, lse.shape, attributes);
  expect_shapes(dout.shape == out.shape && dq.shape == q.shape && dk.shape == k.shape && dv.shape == v.shape,
                "attention's gradients are shaped as what they belong to");
  return {.flops = flops_per_depth(sizes, attributes) * static_cast<double>(3 * sizes.head_dim + 2 * sizes.value_dim),
          .math = q.dtype,
          .bytes = bytes_of(q, k, v, out, lse, dout, dq, dk, dv)};
}

}  // namespace tandem
