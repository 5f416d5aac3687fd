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

/// `wholes`: k and v, or k alone.
template <typename Operand>
const SequenceAttributes& checked(const Operand& parts, std::span<const Operand> wholes, const OpAttributes& any) {
  const auto& attributes = std::get<SequenceAttributes>(any);
  expect_shapes(wholes.size() == 1 || wholes.size() == 2, "a sequence is joined of keys and values, or of one tensor");
  const Shape &k = wholes.front().shape, &v = wholes.back().shape;
  expect_shapes(parts.shape.elements() == k.elements() + (wholes.size() == 2 ? v.elements() : 0) && k[0] == v[0],
                "the parts hold all keys and values");
  expect_shapes(k[0] % (attributes.zigzag ? 2 * attributes.ranks : attributes.ranks) == 0, "all ranks hold equally much");
  return attributes;
}

/// Calls move(part, whole, count) for each run of keys and of values.
template <typename Move>
void for_each_block(const HostTensor& parts, std::span<const HostTensor> wholes, const OpAttributes& any, Move move) {
  const SequenceAttributes& attributes = checked(parts, wholes, any);
  const std::int64_t positions = wholes.front().shape[0], held = positions / attributes.ranks;
  const std::int64_t of_rank = parts.shape.elements() / attributes.ranks;
  std::int64_t first = 0;
  for (const HostTensor& whole : wholes) {
    const std::int64_t width = whole.shape.elements() / positions;
    for_each_run(attributes, positions, [&](std::int64_t rank, std::int64_t within, std::int64_t position, std::int64_t count) {
      move(parts.f32() + rank * of_rank + first + within * width, whole.f32() + position * width, count * width);
    });
    first += held * width;
  }
}

template <typename Operand>
Bytes bytes_of_all(std::span<const Operand> operands) {
  Bytes bytes = 0;
  for (const Operand& operand : operands) bytes += operand.bytes();
  return bytes;
}

}  // namespace

OpCost join_sequence_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  checked(operands.front(), operands.subspan(1), any);
  return memory_cost(bytes_of_all(operands));
}

void join_sequence_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  for_each_block(operands.front(), operands.subspan(1), any,
                 [](const float* part, float* whole, std::int64_t count) { std::copy_n(part, count, whole); });
}

OpCost split_sequence_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  checked(operands.back(), operands.first(operands.size() - 1), any);
  return memory_cost(bytes_of_all(operands));
}

void split_sequence_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  for_each_block(operands.back(), operands.first(operands.size() - 1), any,
                 [](float* part, const float* whole, std::int64_t count) { std::copy_n(whole, count, part); });
}

}  // namespace tandem
