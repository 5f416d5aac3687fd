#include "runtime/ops/split_heads.h"

#include <algorithm>

#include "runtime/ops/operands.h"
#include "runtime/ops/rotation.h"

namespace tandem {
namespace {

void check_shapes(const Shape& qkv, const Shape& q, const Shape& k, const Shape& v, const SplitHeadsAttributes& attributes) {
  const std::int64_t s = q[0], b = q[1], d = q[3];
  expect_shapes(q == Shape(s, b, attributes.heads, d), "split_heads needs q [s,b,heads,d]");
  expect_shapes(k == Shape(s, b, attributes.kv_heads, d) && v == k, "split_heads needs k and v [s,b,kv_heads,d]");
  expect_shapes(qkv == Shape(s, b, (attributes.heads + 2 * attributes.kv_heads) * d), "split_heads needs qkv [s,b,(H+2K)d]");
  expect_shapes(!attributes.rotate || (attributes.positions.count() == s && d % 2 == 0),
                "rotary embedding needs a position for each row and an even head");
}

void rotate_heads(const float* in, float* out, std::int64_t heads, std::int64_t head_dim, const Rotation& rotation,
                  Direction direction) {
  for (std::int64_t head = 0; head < heads; ++head) rotate(in + head * head_dim, out + head * head_dim, rotation, direction);
}

/// Calls per_token(token row, rotation) for all rows of [s,b]; the rotation is that of the row's position.
template <typename PerToken>
void for_each_token(const Shape& q, const SplitHeadsAttributes& attributes, PerToken per_token) {
  const std::int64_t micro_batch = q[1], head_dim = q[3];
  for (std::int64_t s = 0; s < q[0]; ++s) {
    const std::int32_t position = attributes.rotate ? attributes.positions.at(static_cast<std::int32_t>(s)) : 0;
    const Rotation rotation(position, head_dim, attributes.base);
    for (std::int64_t b = 0; b < micro_batch; ++b) per_token(s * micro_batch + b, rotation);
  }
}

void move_heads(const float* in, float* out, std::int64_t heads, std::int64_t head_dim, const Rotation& rotation, bool turn,
                Direction direction) {
  if (turn)
    rotate_heads(in, out, heads, head_dim, rotation, direction);
  else
    std::copy_n(in, heads * head_dim, out);
}

}  // namespace

OpCost split_heads_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [qkv, q, k, v] = unpack<4>(operands, "split_heads");
  check_shapes(qkv.shape, q.shape, k.shape, v.shape, std::get<SplitHeadsAttributes>(any));
  return memory_cost(bytes_of(qkv, q, k, v));
}

void split_heads_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<SplitHeadsAttributes>(any);
  const auto [qkv, q, k, v] = unpack<4>(operands, "split_heads");
  check_shapes(qkv.shape, q.shape, k.shape, v.shape, attributes);
  const std::int64_t d = q.shape[3], q_width = attributes.heads * d, kv_width = attributes.kv_heads * d;
  for_each_token(q.shape, attributes, [&](std::int64_t row, const Rotation& rotation) {
    const float* in = qkv.f32() + row * (q_width + 2 * kv_width);
    move_heads(in, q.f32() + row * q_width, attributes.heads, d, rotation, attributes.rotate, Direction::forward);
    move_heads(in + q_width, k.f32() + row * kv_width, attributes.kv_heads, d, rotation, attributes.rotate, Direction::forward);
    std::copy_n(in + q_width + kv_width, kv_width, v.f32() + row * kv_width);
  });
}

OpCost split_heads_backward_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [dq, dk, dv, dqkv] = unpack<4>(operands, "split_heads_backward");
  check_shapes(dqkv.shape, dq.shape, dk.shape, dv.shape, std::get<SplitHeadsAttributes>(any));
  return memory_cost(bytes_of(dq, dk, dv, dqkv));
}

void split_heads_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<SplitHeadsAttributes>(any);
  const auto [dq, dk, dv, dqkv] = unpack<4>(operands, "split_heads_backward");
  check_shapes(dqkv.shape, dq.shape, dk.shape, dv.shape, attributes);
  const std::int64_t d = dq.shape[3], q_width = attributes.heads * d, kv_width = attributes.kv_heads * d;
  for_each_token(dq.shape, attributes, [&](std::int64_t row, const Rotation& rotation) {
    float* out = dqkv.f32() + row * (q_width + 2 * kv_width);
    move_heads(dq.f32() + row * q_width, out, attributes.heads, d, rotation, attributes.rotate, Direction::backward);
    move_heads(dk.f32() + row * kv_width, out + q_width, attributes.kv_heads, d, rotation, attributes.rotate,
               Direction::backward);
    std::copy_n(dv.f32() + row * kv_width, kv_width, out + q_width + kv_width);
  });
}

}  // namespace tandem
