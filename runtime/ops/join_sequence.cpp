#include "runtime/ops/join_sequence.h"

#include <algorithm>

#include "runtime/ops/operands.h"

namespace tandem {
namespace {

/// Calls run(rank, first of its rows, position, count) for each run of positions of each rank.
template <typename Run>
void for_each_run(const SequenceAttributes& attributes, std::int64_t positions, Run run) {
  const std::int64_t ranks = attributes.ranks;
  const std::int64_t held = positions / ranks;
  const std::int64_t chunk = attributes.zigzag ? held / 2 : held;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    run(rank, 0, rank * chunk, chunk);
    if (attributes.zigzag) run(rank, chunk, (2 * ranks - 1 - rank) * chunk, chunk);
  }
}

const SequenceAttributes& checked(const Shape& parts, const Shape& k, const Shape& v, const OpAttributes& any) {
  const auto& attributes = std::get<SequenceAttributes>(any);
  expect_shapes(parts.elements() == k.elements() + v.elements() && k[0] == v[0], "the parts hold all keys and values");
  expect_shapes(k[0] % (attributes.zigzag ? 2 * attributes.ranks : attributes.ranks) == 0, "all ranks hold equally much");
  return attributes;
}

/// Calls move(part, whole, count) for each run of keys and of values.
template <typename Move>
void for_each_block(const HostTensor& parts, const HostTensor& k, const HostTensor& v, const OpAttributes& any, Move move) {
  const SequenceAttributes& attributes = checked(parts.shape, k.shape, v.shape, any);
  const std::int64_t positions = k.shape[0], held = positions / attributes.ranks;
  const std::int64_t key = k.shape.elements() / positions, value = v.shape.elements() / positions;
  for_each_run(attributes, positions, [&](std::int64_t rank, std::int64_t within, std::int64_t position, std::int64_t count) {
    float* part = parts.f32() + rank * held * (key + value);
    move(part + within * key, k.f32() + position * key, count * key);
    move(part + held * key + within * value, v.f32() + position * value, count * value);
  });
}

}  // namespace

OpCost join_sequence_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [parts, k, v] = unpack<3>(operands, "join_sequence");
  checked(parts.shape, k.shape, v.shape, any);
  return memory_cost(bytes_of(parts, k, v));
}

void join_sequence_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [parts, k, v] = unpack<3>(operands, "join_sequence");
  for_each_block(parts, k, v, any, [](const float* part, float* whole, std::int64_t count) { std::copy_n(part, count, whole); });
}

OpCost split_sequence_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [dk, dv, parts] = unpack<3>(operands, "split_sequence");
  checked(parts.shape, dk.shape, dv.shape, any);
  return memory_cost(bytes_of(parts, dk, dv));
}

void split_sequence_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [dk, dv, parts] = unpack<3>(operands, "split_sequence");
  for_each_block(parts, dk, dv, any,
                 [](float* part, const float* whole, std::int64_t count) { std::copy_n(whole, count, part); });
}

}  // namespace tandem
