#include "runtime/ops/bias.h"

#include "runtime/ops/operands.h"

namespace tandem {

std::vector<BiasedRows> biased_rows(const Shape& bias, const Shape& x, const OpAttributes& attributes) {
  const std::int64_t columns = columns_of(x);
  const auto* const experts = std::get_if<GroupedGemmAttributes>(&attributes);
  std::vector<BiasedRows> all;
  if (experts == nullptr) {
    all.push_back({0, rows_of(x), 0});
  } else {
    std::int64_t first = 0;
    for (const std::int32_t rows : experts->rows) {
      all.push_back({first, rows, static_cast<std::int64_t>(all.size()) * columns});
      first += rows;
    }
    expect_shapes(first == rows_of(x), "biased rows are those of the experts");
  }
  expect_shapes(bias.elements() == static_cast<std::int64_t>(all.size()) * columns, "a bias has an element for each column");
  return all;
}

OpCost add_bias_cost(std::span<const OperandType> operands, const OpAttributes& attributes) {
  const auto [bias, x] = unpack<2>(operands, "add_bias");
  biased_rows(bias.shape, x.shape, attributes);
  return memory_cost(bytes_of(bias, x, x));
}

void add_bias_host(std::span<const HostTensor> operands, const OpAttributes& attributes) {
  const auto [bias, x] = unpack<2>(operands, "add_bias");
  const std::int64_t columns = columns_of(x.shape);
  for (const BiasedRows& part : biased_rows(bias.shape, x.shape, attributes))
    for (std::int64_t i = 0; i < part.rows * columns; ++i)
      x.f32()[part.first * columns + i] += bias.f32()[part.bias + i % columns];
}

OpCost bias_gradient_cost(std::span<const OperandType> operands, const OpAttributes& attributes) {
  const auto [dy, dbias] = unpack<2>(operands, "bias_gradient");
  biased_rows(dbias.shape, dy.shape, attributes);
  return memory_cost(bytes_of(dy, dbias, dbias));
}

void bias_gradient_host(std::span<const HostTensor> operands, const OpAttributes& attributes) {
  const auto [dy, dbias] = unpack<2>(operands, "bias_gradient");
  const std::int64_t columns = columns_of(dy.shape);
  for (const BiasedRows& part : biased_rows(dbias.shape, dy.shape, attributes))
    for (std::int64_t column = 0; column < columns; ++column) {
      double sum = 0;
      for (std::int64_t row = part.first; row < part.first + part.rows; ++row) sum += dy.f32()[row * columns + column];
      dbias.f32()[part.bias + column] += static_cast<float>(sum);
    }
}

}  // namespace tandem
