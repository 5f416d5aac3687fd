#include "runtime/ops/embedding.h"

#include <algorithm>

#include "runtime/ops/operands.h"

namespace tandem {
namespace {

void check_shapes(const Shape& ids, const Shape& table, const Shape& out) {
  expect_shapes(ids.elements() == rows_of(out) && columns_of(table) == columns_of(out),
                "embedding needs ids [s,b], table [V,h], out [s,b,h]");
}

Bytes touched_bytes(const OperandType& ids, const OperandType& table) {
  const std::int64_t rows = std::min(ids.shape.elements(), rows_of(table.shape));
  return rows * columns_of(table.shape) * size_of(table.dtype);
}

/// The table's row for a token; null when it lies in another shard.
float* row_of_token(const HostTensor& table, std::int64_t token, const EmbeddingAttributes& attributes) {
  const std::int64_t row = token - attributes.vocab_start;
  return row >= 0 && row < rows_of(table.shape) ? table.f32() + row * columns_of(table.shape) : nullptr;
}

}  // namespace

OpCost embedding_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [ids, table, out] = unpack<3>(operands, "embedding");
  check_shapes(ids.shape, table.shape, out.shape);
  return memory_cost(bytes_of(ids, out) + touched_bytes(ids, table));
}

void embedding_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<EmbeddingAttributes>(any);
  const auto [ids, table, out] = unpack<3>(operands, "embedding");
  check_shapes(ids.shape, table.shape, out.shape);
  const std::int64_t width = columns_of(out.shape);
  for (std::int64_t i = 0; i < ids.shape.elements(); ++i) {
    float* to = out.f32() + i * width;
    if (const float* row = row_of_token(table, ids.i32()[i], attributes))
      std::copy_n(row, width, to);
    else
      std::fill_n(to, width, 0.0F);
  }
}

OpCost embedding_backward_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [ids, dout, dtable] = unpack<3>(operands, "embedding_backward");
  check_shapes(ids.shape, dtable.shape, dout.shape);
  return memory_cost(bytes_of(ids, dout) + 2 * touched_bytes(ids, dtable));
}

void embedding_backward_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<EmbeddingAttributes>(any);
  const auto [ids, dout, dtable] = unpack<3>(operands, "embedding_backward");
  check_shapes(ids.shape, dtable.shape, dout.shape);
  const std::int64_t width = columns_of(dout.shape);
  for (std::int64_t i = 0; i < ids.shape.elements(); ++i) {
    float* row = row_of_token(dtable, ids.i32()[i], attributes);
    if (row == nullptr) continue;
    const float* gradient = dout.f32() + i * width;
    for (std::int64_t j = 0; j < width; ++j) row[j] += gradient[j];
  }
}

}  // namespace tandem
