#include "runtime/ops/indexer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "runtime/ops/sparse_attention.h"
#include "runtime/ops/sparse_sizes.h"
#include "runtime/ops/sum.h"

namespace tandem {
namespace {

double product_of(const float* a, const float* b, std::int64_t width) {
  return sum_of(width, [=](auto i) { return double{a[i]} * b[i]; });
}

void check_weights(const SparseSizes& n, const Shape& w) {
  expect_shapes(w.elements() == n.queries * n.micro_batch * n.heads, "an indexer needs weights [s,b,n]");
}

std::int64_t learnt_keys(const SparseSizes& n, const SparseAttentionAttributes& attributes) {
  return attributes.all_keys ? n.keys : n.most;
}

void check_target(const SparseSizes& n, const Shape& target, const SparseAttentionAttributes& attributes) {
  expect_shapes(target == Shape(n.micro_batch, n.queries, learnt_keys(n, attributes)),
                "an indexer's target is [b,s,K], or [b,s,t] over all keys");
}

/// The keys of the query's position and those before, in their order.
std::vector<std::int32_t> seen_keys(const SparseAttentionAttributes& attributes, std::int64_t query) {
  std::vector<std::int32_t> seen;
  const std::int32_t position = attributes.queries.at(static_cast<std::int32_t>(query));
  for (std::int32_t key = 0; key < attributes.keys.count(); ++key)
    if ((attributes.keys.at(key) + 1) * attributes.ratio <= position + 1) seen.push_back(key);
  return seen;
}

/// What a query learns from: numbers of keys, and where each lies in its row of the target.
struct Learnt {
  std::vector<std::int32_t> keys, places;
};
Learnt learnt_of(const HostTensor& chosen, const SparseAttentionAttributes& attributes, std::int64_t b, std::int64_t query) {
  Learnt learnt;
  if (attributes.all_keys) {
    learnt.keys = learnt.places = seen_keys(attributes, query);
  } else {
    const std::span<const std::int32_t> row = chosen_of(chosen, b, query);
    learnt.keys.assign(row.begin(), row.end());
    learnt.places.resize(row.size());
    std::iota(learnt.places.begin(), learnt.places.end(), 0);
  }
  return learnt;
}

/// Turns scores into their softmax.
void normalise(std::vector<double>& scores) {
  if (scores.empty()) return;
  const double largest = *std::ranges::max_element(scores);
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - largest);
  for (double& score : scores) score /= sum;
}

/// The scores of one query's keys.
class IndexScores {
 public:
  IndexScores(const SparseSizes& n, const HostTensor& q, const HostTensor& k, const HostTensor& w, float scale)
      : n_(n), q_(q), k_(k), w_(w), scale_(scale) {}

  double weight(std::int64_t b, std::int64_t query, std::int64_t head) const {
    return double{scale_} * w_.f32()[(query * n_.micro_batch + b) * n_.heads + head];
  }
  double dot(std::int64_t b, std::int64_t query, std::int64_t head, std::int32_t key) const {
    return product_of(q_.f32() + n_.query_row(b, query, head), k_.f32() + n_.key_row(b, key), n_.width);
  }
  double score(std::int64_t b, std::int64_t query, std::int32_t key) const {
    double sum = 0;
    for (std::int64_t head = 0; head < n_.heads; ++head) sum += weight(b, query, head) * std::max(0.0, dot(b, query, head, key));
    return sum;
  }

 private:
  const SparseSizes& n_;
  const HostTensor &q_, &k_, &w_;
  float scale_;
};

OpCost sum_of_costs(const std::vector<OpCost>& parts) {
  OpCost sum = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    sum.flops += parts[i].flops;
    sum.bytes += parts[i].bytes;
  }
  return sum;
}

/// FLOPs of a product of depth 1 over pairs.
Flops flops_of_pairs(const SparseSizes& n, std::int64_t pairs) {
  return 2.0 * static_cast<double>(n.micro_batch * n.heads) * static_cast<double>(pairs);
}

std::int64_t learnt_pairs(const SparseSizes& n, const SparseAttentionAttributes& attributes) {
  return chosen_pairs(attributes, learnt_keys(n, attributes));
}

}  // namespace

std::vector<OpCost> index_select_parts(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto& attributes = std::get<SparseAttentionAttributes>(any);
  const auto [q, k, w, chosen] = unpack<4>(operands, "index_select");
  const SparseSizes n(q.shape, k.shape, chosen.shape, attributes);
  check_weights(n, w.shape);
  const std::int64_t pairs = chosen_pairs(attributes, n.keys);
  const Bytes scores = size_of(DType::f32, n.micro_batch * pairs);
  return {
      {.flops = flops_of_pairs(n, pairs) * static_cast<double>(n.width), .math = q.dtype, .bytes = bytes_of(q, k, w) + scores},
      memory_cost(scores + chosen.bytes())};
}

OpCost index_select_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  return sum_of_costs(index_select_parts(operands, any));
}

void index_select_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<SparseAttentionAttributes>(any);
  const auto [q, k, w, chosen] = unpack<4>(operands, "index_select");
  const SparseSizes n(q.shape, k.shape, chosen.shape, attributes);
  check_weights(n, w.shape);
  const IndexScores scores(n, q, k, w, attributes.scale);
  std::vector<float> of_key(static_cast<std::size_t>(n.keys));
  for (std::int64_t b = 0; b < n.micro_batch; ++b)
    for (std::int64_t query = 0; query < n.queries; ++query) {
      std::vector<std::int32_t> keys = seen_keys(attributes, query);
      const auto most = static_cast<std::size_t>(n.most);
      if (keys.size() > most) {
        for (const std::int32_t key : keys)
          of_key[static_cast<std::size_t>(key)] = static_cast<float>(scores.score(b, query, key));
        const auto before = [&](std::int32_t x, std::int32_t y) {
          const float first = of_key[static_cast<std::size_t>(x)], second = of_key[static_cast<std::size_t>(y)];
          return first > second || (first == second && x < y);
        };
        std::ranges::nth_element(keys, keys.begin() + static_cast<std::ptrdiff_t>(most), before);
        keys.resize(most);
        std::ranges::sort(keys);
      }
      std::int32_t* const row = chosen.i32() + (b * n.queries + query) * n.most;
      std::fill(std::ranges::copy(keys, row).out, row + n.most, -1);
    }
}

std::vector<OpCost> index_target_parts(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto& attributes = std::get<SparseAttentionAttributes>(any);
  const auto [q, k, chosen, target] = unpack<4>(operands, "index_target");
  const SparseSizes n(q.shape, k.shape, chosen.shape, attributes);
  check_target(n, target.shape, attributes);
  return {{.flops = flops_of_pairs(n, learnt_pairs(n, attributes)) * static_cast<double>(n.width),
           .math = q.dtype,
           .bytes = bytes_of(q, k, chosen, target)}};
}

OpCost index_target_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  return sum_of_costs(index_target_parts(operands, any));
}

void index_target_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<SparseAttentionAttributes>(any);
  const auto [q, k, chosen, target] = unpack<4>(operands, "index_target");
  const SparseSizes n(q.shape, k.shape, chosen.shape, attributes);
  check_target(n, target.shape, attributes);
  const std::int64_t row_length = columns_of(target.shape);
  std::fill_n(target.f32(), target.shape.elements(), 0.0F);
  std::vector<double> p;
  for (std::int64_t b = 0; b < n.micro_batch; ++b)
    for (std::int64_t query = 0; query < n.queries; ++query) {
      const Learnt learnt = learnt_of(chosen, attributes, b, query);
      std::vector<double> sums(learnt.keys.size(), 0.0);
      for (std::int64_t head = 0; head < n.heads; ++head) {
        p.clear();
        for (const std::int32_t key : learnt.keys)
          p.push_back(attributes.scale * product_of(q.f32() + n.query_row(b, query, head), k.f32() + n.key_row(b, key), n.width));
        normalise(p);
        for (std::size_t j = 0; j < p.size(); ++j) sums[j] += p[j];
      }
      float* const row = target.f32() + (b * n.queries + query) * row_length;
      for (std::size_t j = 0; j < sums.size(); ++j) row[learnt.places[j]] = static_cast<float>(sums[j]);
    }
}

std::vector<OpCost> index_loss_backward_parts(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto& attributes = std::get<SparseAttentionAttributes>(any);
  const auto [q, k, w, chosen, target, dq, dk, dw] = unpack<8>(operands, "index_loss_backward");
  const SparseSizes n(q.shape, k.shape, chosen.shape, attributes);
  check_weights(n, w.shape);
  check_target(n, target.shape, attributes);
  expect_shapes(dq.shape == q.shape && dk.shape == k.shape && dw.shape == w.shape,
                "an indexer's gradients are shaped as what they belong to");
  return {{.flops = 3 * flops_of_pairs(n, learnt_pairs(n, attributes)) * static_cast<double>(n.width),
           .math = q.dtype,
           .bytes = bytes_of(q, k, w, chosen, target, dq, dk, dw)}};
}

OpCost index_loss_backward_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  return sum_of_costs(index_loss_backward_parts(operands, any));
}

// The gradient of a score is coefficient (softmax - p).
void index_loss_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<SparseAttentionAttributes>(any);
  const auto [q, k, w, chosen, target, dq, dk, dw] = unpack<8>(operands, "index_loss_backward");
  const SparseSizes n(q.shape, k.shape, chosen.shape, attributes);
  check_weights(n, w.shape);
  check_target(n, target.shape, attributes);
  const IndexScores scores(n, q, k, w, attributes.scale);
  const std::int64_t row_length = columns_of(target.shape);
  std::fill_n(dq.f32(), q.shape.elements(), 0.0F);
  std::vector<double> sums(static_cast<std::size_t>(k.shape.elements()), 0.0), p;  // sums: dk
  for (std::int64_t b = 0; b < n.micro_batch; ++b)
    for (std::int64_t query = 0; query < n.queries; ++query) {
      const Learnt learnt = learnt_of(chosen, attributes, b, query);
      const float* const row = target.f32() + (b * n.queries + query) * row_length;
      double whole = 0;
      for (const std::int32_t place : learnt.places) whole += row[place];
      p.clear();
      for (const std::int32_t key : learnt.keys) p.push_back(scores.score(b, query, key));
      normalise(p);
      for (std::int64_t head = 0; head < n.heads; ++head) {
        const std::int64_t of_query = n.query_row(b, query, head);
        const double weight = scores.weight(b, query, head);
        double of_weight = 0;
        for (std::size_t j = 0; j < p.size(); ++j) {
          const double dot = scores.dot(b, query, head, learnt.keys[j]);
          if (dot <= 0) continue;
          const double share = whole > 0 ? row[learnt.places[j]] / whole : 0;
          const double gradient = attributes.coefficient * (p[j] - share);
          const std::int64_t of_key = n.key_row(b, learnt.keys[j]);
          of_weight += gradient * attributes.scale * dot;
          for (std::int64_t i = 0; i < n.width; ++i) {
            dq.f32()[of_query + i] += static_cast<float>(gradient * weight * k.f32()[of_key + i]);
            sums[static_cast<std::size_t>(of_key + i)] += gradient * weight * q.f32()[of_query + i];
          }
        }
        dw.f32()[(query * n.micro_batch + b) * n.heads + head] = static_cast<float>(of_weight);
      }
    }
  std::ranges::transform(sums, dk.f32(), [](double sum) { return static_cast<float>(sum); });
}

}  // namespace tandem
