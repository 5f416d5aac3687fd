#include "runtime/ops/mla_heads.h"

#include <algorithm>

#include "runtime/ops/documents.h"
#include "runtime/ops/operands.h"
#include "runtime/ops/rotation.h"

namespace tandem {
namespace {

struct Sizes {
  std::int64_t positions = 0, micro_batch = 0, heads = 0, nope = 0, rope = 0, value = 0;

  Sizes(const Shape& qk, const MlaHeadsAttributes& attributes)
      : positions(qk[0]), micro_batch(qk[1]), heads(qk[2]), nope(qk[3] - attributes.rope_dim), rope(attributes.rope_dim) {
    expect_shapes(attributes.positions.count() == positions && rope % 2 == 0 && nope >= 0,
                  "latent attention needs a position for each row and an even rotated part within the head");
  }
};

Sizes query_sizes(const Shape& x, const Shape& q, const MlaHeadsAttributes& attributes) {
  const Sizes n(q, attributes);
  expect_shapes(x == Shape(n.positions, n.micro_batch, n.heads * (n.nope + n.rope)), "mla_queries needs x [s,b,H(n+r)]");
  return n;
}

Sizes key_value_sizes(const Shape& x, const Shape& rope, const Shape& k, const Shape& v, const MlaHeadsAttributes& attributes) {
  Sizes n(k, attributes);
  n.value = v[3];
  expect_shapes(x == Shape(n.positions, n.micro_batch, n.heads * (n.nope + n.value)), "mla_keys_values needs x [t,b,H(n+e)]");
  expect_shapes(rope == Shape(n.positions, n.micro_batch, n.rope), "mla_keys_values needs rope [t,b,r]");
  expect_shapes(v == Shape(n.positions, n.micro_batch, n.heads, n.value), "mla_keys_values needs v [t,b,H,e]");
  return n;
}

/// Calls per_token(token row, rotation) for all rows of [s,b]; the rotation is that of the row's position, or of that in its
/// document.
template <typename PerToken>
void for_each_token(const Sizes& n, const MlaHeadsAttributes& attributes, PerToken per_token) {
  if (!attributes.documents.starts.empty()) {
    const std::vector<DocumentPlace> places = places_of(attributes.documents, attributes.positions, n.micro_batch);
    for (std::int64_t row = 0; row < n.positions * n.micro_batch; ++row) {
      const std::int32_t token = places[static_cast<std::size_t>(row % n.micro_batch * n.positions + row / n.micro_batch)].token;
      per_token(row, Rotation(token * attributes.stride, n.rope, attributes.base, attributes.yarn));
    }
    return;
  }
  for (std::int64_t s = 0; s < n.positions; ++s) {
    const std::int32_t position = attributes.positions.at(static_cast<std::int32_t>(s)) * attributes.stride;
    const Rotation rotation(position, n.rope, attributes.base, attributes.yarn);
    for (std::int64_t b = 0; b < n.micro_batch; ++b) per_token(s * n.micro_batch + b, rotation);
  }
}

void turn_queries(const HostTensor& in, const HostTensor& out, const Sizes& n, const MlaHeadsAttributes& attributes,
                  Direction direction) {
  const std::int64_t width = n.nope + n.rope;
  for_each_token(n, attributes, [&](std::int64_t row, const Rotation& rotation) {
    for (std::int64_t head = row * n.heads; head < (row + 1) * n.heads; ++head) {
      const float* from = in.f32() + head * width;
      float* to = out.f32() + head * width;
      std::copy_n(from, n.nope, to);
      rotate(from + n.nope, to + n.nope, rotation, direction);
    }
  });
}

}  // namespace

OpCost mla_queries_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [x, q] = unpack<2>(operands, "mla_queries");
  query_sizes(x.shape, q.shape, std::get<MlaHeadsAttributes>(any));
  return memory_cost(bytes_of(x, q));
}

void mla_queries_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<MlaHeadsAttributes>(any);
  const auto [x, q] = unpack<2>(operands, "mla_queries");
  turn_queries(x, q, query_sizes(x.shape, q.shape, attributes), attributes, Direction::forward);
}

OpCost mla_queries_backward_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [dq, dx] = unpack<2>(operands, "mla_queries_backward");
  query_sizes(dx.shape, dq.shape, std::get<MlaHeadsAttributes>(any));
  return memory_cost(bytes_of(dq, dx));
}

void mla_queries_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<MlaHeadsAttributes>(any);
  const auto [dq, dx] = unpack<2>(operands, "mla_queries_backward");
  turn_queries(dq, dx, query_sizes(dx.shape, dq.shape, attributes), attributes, Direction::backward);
}

OpCost mla_keys_values_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [x, rope, k, v] = unpack<4>(operands, "mla_keys_values");
  key_value_sizes(x.shape, rope.shape, k.shape, v.shape, std::get<MlaHeadsAttributes>(any));
  return memory_cost(bytes_of(x, rope, k, v));
}

void mla_keys_values_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<MlaHeadsAttributes>(any);
  const auto [x, rope, k, v] = unpack<4>(operands, "mla_keys_values");
  const Sizes n = key_value_sizes(x.shape, rope.shape, k.shape, v.shape, attributes);
  for_each_token(n, attributes, [&](std::int64_t row, const Rotation& rotation) {
    for (std::int64_t head = row * n.heads; head < (row + 1) * n.heads; ++head) {
      const float* from = x.f32() + head * (n.nope + n.value);
      float* key = k.f32() + head * (n.nope + n.rope);
      std::copy_n(from, n.nope, key);
      std::copy_n(from + n.nope, n.value, v.f32() + head * n.value);
      rotate(rope.f32() + row * n.rope, key + n.nope, rotation, Direction::forward);
    }
  });
}

OpCost mla_keys_values_backward_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [dk, dv, dx, drope] = unpack<4>(operands, "mla_keys_values_backward");
  key_value_sizes(dx.shape, drope.shape, dk.shape, dv.shape, std::get<MlaHeadsAttributes>(any));
  return memory_cost(bytes_of(dk, dv, dx, drope));
}

void mla_keys_values_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<MlaHeadsAttributes>(any);
  const auto [dk, dv, dx, drope] = unpack<4>(operands, "mla_keys_values_backward");
  const Sizes n = key_value_sizes(dx.shape, drope.shape, dk.shape, dv.shape, attributes);
  for_each_token(n, attributes, [&](std::int64_t row, const Rotation& rotation) {
    float* sum = drope.f32() + row * n.rope;
    std::fill_n(sum, n.rope, 0.0F);
    for (std::int64_t head = row * n.heads; head < (row + 1) * n.heads; ++head) {
      const float* key = dk.f32() + head * (n.nope + n.rope);
      float* to = dx.f32() + head * (n.nope + n.value);
      std::copy_n(key, n.nope, to);
      std::copy_n(dv.f32() + head * n.value, n.value, to + n.nope);
      for (std::int64_t i = 0; i < n.rope; ++i) sum[i] += key[n.nope + i];
    }
    rotate(sum, sum, rotation, Direction::backward);
  });
}

}  // namespace tandem
