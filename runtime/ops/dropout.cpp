#include "runtime/ops/dropout.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/ops/operands.h"

namespace tandem {
namespace {

/// Apart from the seed of weights and tokens.
constexpr std::uint64_t mask_seed = 0xD409;

template <typename Operand>
void check_backward(const Operand& dy, const Operand& mask, const Operand& dx) {
  expect_shapes(mask.shape.elements() == dy.shape.elements() && dx.shape.elements() == dy.shape.elements(),
                "dropout's mask and gradients have as many elements as what was dropped from");
}

template <typename Operand>
DropoutMask checked_mask(const Operand& x, const Operand& sequences, const Operand& y, const Operand& mask,
                         const OpAttributes& any) {
  expect_shapes(y.shape == x.shape && mask.shape == x.shape, "dropout's result and mask are shaped as its input");
  return mask_of(x.shape, sequences.shape, std::get<DropoutAttributes>(any));
}

/// Calls visit(i, kept) for every element.
template <typename Visit>
void each_element(const DropoutMask& mask, const HostTensor& x, const HostTensor& sequences, Visit visit) {
  const std::int64_t columns = columns_of(x.shape);
  for (std::int64_t row = 0; row < rows_of(x.shape); ++row) {
    const std::uint64_t key = mask.of_row(static_cast<std::uint32_t>(row), sequences.i32());
    for (std::int64_t column = 0; column < columns; ++column) visit(row * columns + column, mask.keeps(key, column));
  }
}

}  // namespace

float kept_factor(const DropoutAttributes& attributes) { return 1.0F / (1.0F - attributes.probability); }

DropoutMask mask_of(const Shape& x, const Shape& sequences, const DropoutAttributes& attributes) {
  expect_shapes(x.rank == 3 || x.rank == 4, "dropout takes [rows,b,h] or [b,H,rows,keys]");
  const bool by_heads = x.rank == 4;
  const std::int64_t batch = by_heads ? x[0] : x[1], rows = by_heads ? x[2] : x[0];
  expect_shapes(sequences.elements() == batch, "dropout needs the number of each sequence");
  expect_shapes(attributes.rows.count() == rows, "dropout needs a position for each row");
  expect_shapes(
      rows_of(x) <= std::numeric_limits<std::uint32_t>::max() && columns_of(x) <= std::numeric_limits<std::uint32_t>::max(),
      "dropout counts rows and columns with 32 bits");
  return {.by_heads = by_heads,
          .rows = static_cast<std::uint32_t>(rows),
          .batch = static_cast<std::uint32_t>(batch),
          .heads = static_cast<std::uint32_t>(by_heads ? x[1] : 1),
          .start = {attributes.rows.start[0], attributes.rows.start[1]},
          .first_run = attributes.rows.length[0],
          .first_head = attributes.first_head,
          .key = hash_of_place(mask_seed, 0, attributes.stream),
          .dropped = static_cast<std::uint32_t>(std::min(std::lround(attributes.probability * 0x1p16F), 0xFFFFL)) << 16U,
          .factor = kept_factor(attributes)};
}

OpCost dropout_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [x, sequences, y, mask] = unpack<4>(operands, "dropout");
  checked_mask(x, sequences, y, mask, any);
  return memory_cost(bytes_of(x, sequences, y, mask));
}

void dropout_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [x, sequences, y, mask] = unpack<4>(operands, "dropout");
  const DropoutMask drawn = checked_mask(x, sequences, y, mask, any);
  const float *from = x.f32(), factor = drawn.factor;
  float *to = y.f32(), *kept = mask.f32();
  each_element(drawn, x, sequences, [=](std::int64_t i, bool keep) {
    kept[i] = keep ? 1.0F : 0.0F;
    to[i] = keep ? factor * from[i] : 0.0F;
  });
}

OpCost dropout_backward_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [dy, mask, dx] = unpack<3>(operands, "dropout_backward");
  check_backward(dy, mask, dx);
  return memory_cost(bytes_of(dy, mask, dx));
}

void dropout_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [dy, mask, dx] = unpack<3>(operands, "dropout_backward");
  check_backward(dy, mask, dx);
  const float factor = kept_factor(std::get<DropoutAttributes>(any));
  for (std::int64_t i = 0; i < dy.shape.elements(); ++i) dx.f32()[i] = mask.f32()[i] > 0 ? factor * dy.f32()[i] : 0.0F;
}

OpCost dropout_add_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [x, residual, sequences, y, mask] = unpack<5>(operands, "dropout_add");
  expect_shapes(residual.shape == x.shape, "dropout_add's residual is shaped as its input");
  checked_mask(x, sequences, y, mask, any);
  return memory_cost(bytes_of(x, residual, sequences, y, mask));
}

void dropout_add_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [x, residual, sequences, y, mask] = unpack<5>(operands, "dropout_add");
  expect_shapes(residual.shape == x.shape, "dropout_add's residual is shaped as its input");
  const DropoutMask drawn = checked_mask(x, sequences, y, mask, any);
  const float *from = x.f32(), *past = residual.f32(), factor = drawn.factor;
  float *to = y.f32(), *kept = mask.f32();
  each_element(drawn, x, sequences, [=](std::int64_t i, bool keep) {
    kept[i] = keep ? 1.0F : 0.0F;
    to[i] = past[i] + (keep ? factor * from[i] : 0.0F);
  });
}

}  // namespace tandem
