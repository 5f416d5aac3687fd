#include "runtime/ops/split_heads.h"

#include <algorithm>

#include "runtime/ops/documents.h"
#include "runtime/ops/operands.h"
#include "runtime/ops/rotation.h"

namespace tandem {
namespace {

/// The heads, and the one or two tensors that they are split from.
template <typename OperandT>
struct Split {
  std::span<const OperandT> joint, heads;
};

template <typename OperandT>
Split<OperandT> split_operands(std::span<const OperandT> operands) {
  expect_shapes(operands.size() == 4 || operands.size() == 5, "split_heads takes qkv or q and kv, and three kinds of heads");
  return {operands.first(operands.size() - 3), operands.last(3)};
}

template <typename OperandT>
Split<OperandT> backward_operands(std::span<const OperandT> operands) {
  expect_shapes(operands.size() == 4 || operands.size() == 5, "split_heads_backward takes what split_heads does");
  return {operands.subspan(3), operands.first(3)};
}

template <typename OperandT>
void check_shapes(const Split<OperandT>& operands, const SplitHeadsAttributes& attributes) {
  const Shape& q = operands.heads[0].shape;
  const Shape& k = operands.heads[1].shape;
  const Shape& v = operands.heads[2].shape;
  const std::int64_t s = q[0], b = q[1], d = q[3];
  expect_shapes(q == Shape(s, b, attributes.heads, d), "split_heads needs q [s,b,heads,d]");
  expect_shapes(k == Shape(s, b, attributes.kv_heads, d) && v == k, "split_heads needs k and v [s,b,kv_heads,d]");
  if (operands.joint.size() == 1) {
    expect_shapes(operands.joint[0].shape == Shape(s, b, (attributes.heads + 2 * attributes.kv_heads) * d),
                  "split_heads needs qkv [s,b,(H+2K)d]");
  } else {
    expect_shapes(operands.joint[0].shape == Shape(s, b, attributes.heads * d), "split_heads needs q [s,b,Hd]");
    expect_shapes(operands.joint[1].shape == Shape(s, b, 2 * attributes.kv_heads * d), "split_heads needs kv [s,b,2Kd]");
  }
  const std::int64_t r = rotated_of(attributes, d);
  expect_shapes(!attributes.rotate || (attributes.positions.count() == s && r % 2 == 0 && r <= d),
                "rotary embedding needs a position for each row and an even number of elements to turn");
}

void rotate_heads(const float* in, float* out, std::int64_t heads, std::int64_t head_dim, const Rotation& rotation,
                  Direction direction) {
  const auto rotated = 2 * static_cast<std::int64_t>(rotation.cos.size());
  for (std::int64_t head = 0; head < heads; ++head) {
    const std::int64_t first = head * head_dim;
    rotate(in + first, out + first, rotation, direction);
    if (in != out) std::copy(in + first + rotated, in + first + head_dim, out + first + rotated);
  }
}

/// Calls per_token(token row, rotation) for all rows of [s,b]; the rotation is that of the row's position, or of that in its
/// document.
template <typename PerToken>
void for_each_token(const Shape& q, const SplitHeadsAttributes& attributes, PerToken per_token) {
  const std::int64_t micro_batch = q[1], head_dim = q[3];
  if (attributes.rotate && !attributes.documents.starts.empty()) {
    const std::vector<DocumentPlace> places = places_of(attributes.documents, attributes.positions, micro_batch);
    for (std::int64_t row = 0; row < q[0] * micro_batch; ++row) {
      const std::int32_t token = places[static_cast<std::size_t>(row % micro_batch * q[0] + row / micro_batch)].token;
      per_token(row, Rotation(token, rotated_of(attributes, head_dim), attributes.base));
    }
    return;
  }
  for (std::int64_t s = 0; s < q[0]; ++s) {
    const std::int32_t position = attributes.rotate ? attributes.positions.at(static_cast<std::int32_t>(s)) : 0;
    const Rotation rotation(position, rotated_of(attributes, head_dim), attributes.base);
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

OpCost cost(const Split<OperandType>& operands, const SplitHeadsAttributes& attributes) {
  check_shapes(operands, attributes);
  Bytes bytes = 0;
  for (const std::span<const OperandType> side : {operands.joint, operands.heads})
    for (const OperandType& operand : side) bytes += operand.bytes();
  return memory_cost(bytes);
}

/// One token's row of each operand.
struct TokenRow {
  float *q, *kv;                   ///< before the split: the query heads; the key heads and the value heads after them
  float *queries, *keys, *values;  ///< after it
};

/// Calls per_row(row, width of its keys, rotation) for all tokens.
template <typename PerRow>
void for_each_row(const Split<HostTensor>& operands, const SplitHeadsAttributes& attributes, PerRow per_row) {
  check_shapes(operands, attributes);
  const Shape& q = operands.heads[0].shape;
  const std::int64_t q_width = attributes.heads * q[3], kv_width = attributes.kv_heads * q[3];
  const bool fused = operands.joint.size() == 1;
  const std::int64_t q_stride = fused ? q_width + 2 * kv_width : q_width, kv_stride = fused ? q_stride : 2 * kv_width;
  float* const kv = fused ? operands.joint[0].f32() + q_width : operands.joint[1].f32();
  for_each_token(q, attributes, [&](std::int64_t row, const Rotation& rotation) {
    per_row(TokenRow{.q = operands.joint[0].f32() + row * q_stride,
                     .kv = kv + row * kv_stride,
                     .queries = operands.heads[0].f32() + row * q_width,
                     .keys = operands.heads[1].f32() + row * kv_width,
                     .values = operands.heads[2].f32() + row * kv_width},
            kv_width, rotation);
  });
}

void check_rotary(const Shape& q, const Shape& k, const SplitHeadsAttributes& attributes) {
  expect_shapes(attributes.rotate && attributes.positions.count() == q[0], "rotary needs a position for each row");
  expect_shapes(q == Shape(q[0], q[1], attributes.heads, q[3]) && k == Shape(q[0], q[1], attributes.kv_heads, q[3]),
                "rotary needs q [s,b,heads,d] and k [s,b,kv_heads,d]");
  const std::int64_t r = rotated_of(attributes, q[3]);
  expect_shapes(r % 2 == 0 && r <= q[3], "rotary needs an even number of elements to turn");
}

void turn(std::span<const HostTensor> operands, const SplitHeadsAttributes& attributes, Direction direction) {
  const auto [q, k] = unpack<2>(operands, "rotary");
  check_rotary(q.shape, k.shape, attributes);
  const std::int64_t d = q.shape[3];
  for_each_token(q.shape, attributes, [&, q = q, k = k](std::int64_t row, const Rotation& rotation) {
    float *const of_q = q.f32() + row * attributes.heads * d, *const of_k = k.f32() + row * attributes.kv_heads * d;
    rotate_heads(of_q, of_q, attributes.heads, d, rotation, direction);
    rotate_heads(of_k, of_k, attributes.kv_heads, d, rotation, direction);
  });
}

}  // namespace

OpCost split_heads_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  return cost(split_operands(operands), std::get<SplitHeadsAttributes>(any));
}

void split_heads_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& a = std::get<SplitHeadsAttributes>(any);
  const std::int64_t d = operands.back().shape[3];
  for_each_row(split_operands(operands), a, [&](const TokenRow& row, std::int64_t kv_width, const Rotation& rotation) {
    move_heads(row.q, row.queries, a.heads, d, rotation, a.rotate, Direction::forward);
    move_heads(row.kv, row.keys, a.kv_heads, d, rotation, a.rotate, Direction::forward);
    std::copy_n(row.kv + kv_width, kv_width, row.values);
  });
}

OpCost split_heads_backward_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  return cost(backward_operands(operands), std::get<SplitHeadsAttributes>(any));
}

void split_heads_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& a = std::get<SplitHeadsAttributes>(any);
  const std::int64_t d = operands.front().shape[3];
  for_each_row(backward_operands(operands), a, [&](const TokenRow& row, std::int64_t kv_width, const Rotation& rotation) {
    move_heads(row.queries, row.q, a.heads, d, rotation, a.rotate, Direction::backward);
    move_heads(row.keys, row.kv, a.kv_heads, d, rotation, a.rotate, Direction::backward);
    std::copy_n(row.values, kv_width, row.kv + kv_width);
  });
}

OpCost rotary_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [q, k] = unpack<2>(operands, "rotary");
  check_rotary(q.shape, k.shape, std::get<SplitHeadsAttributes>(any));
  return memory_cost(2 * bytes_of(q, k));
}

void rotary_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  turn(operands, std::get<SplitHeadsAttributes>(any), Direction::forward);
}

void rotary_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  turn(operands, std::get<SplitHeadsAttributes>(any), Direction::backward);
}

}  // namespace tandem
