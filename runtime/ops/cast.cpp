#include "runtime/ops/cast.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/ops/cast_rounding.h"
#include "runtime/ops/operands.h"

namespace tandem {
namespace {

/// A matrix inside a host tensor.
struct Rows {
  float* data = nullptr;
  std::int64_t rows = 0, columns = 0;
};

/// One of the outputs of a cast: how it is scaled and rounded.
class Rounding {
 public:
  Rounding(const CastAttributes& attributes, bool by_column)
      : rounding_(attributes, by_column),
        transforms_(by_column && attributes.transforms),
        block_(block_of(attributes.scaling, by_column)) {}

  void apply(const Rows& tensor) const {
    if (transforms_) transform_columns(tensor);
    const float largest = largest_in(tensor, 0, 0, tensor.rows, tensor.columns);
    const std::int64_t height = block_.rows > 0 ? block_.rows : std::max<std::int64_t>(1, tensor.rows);
    const std::int64_t width = block_.columns > 0 ? block_.columns : std::max<std::int64_t>(1, tensor.columns);
    for (std::int64_t row = 0; row < tensor.rows; row += height)
      for (std::int64_t column = 0; column < tensor.columns; column += width)
        round_block(tensor, row, column, std::min(row + height, tensor.rows), std::min(column + width, tensor.columns), largest);
  }

 private:
  NarrowRounding rounding_;
  bool transforms_;
  BlockShape block_;

  static float largest_in(const Rows& tensor, std::int64_t row, std::int64_t column, std::int64_t end_row,
                          std::int64_t end_column) {
    float largest = 0;
    for (std::int64_t r = row; r < end_row; ++r)
      for (std::int64_t c = column; c < end_column; ++c)
        largest = std::max(largest, std::fabs(tensor.data[r * tensor.columns + c]));
    return largest;
  }

  void round_block(const Rows& tensor, std::int64_t row, std::int64_t column, std::int64_t end_row, std::int64_t end_column,
                   float of_tensor) const {
    const float scale = rounding_.scale_of(largest_in(tensor, row, column, end_row, end_column), of_tensor);
    for (std::int64_t r = row; r < end_row; ++r) {
      for (std::int64_t c = column; c < end_column; ++c) {
        float& x = tensor.data[r * tensor.columns + c];
        x = rounding_.rounded(x, scale);
      }
    }
  }

  static void transform_columns(const Rows& tensor) {
    for (std::int64_t row = 0; row + transformed_rows <= tensor.rows; row += transformed_rows) {
      for (std::int64_t column = 0; column < tensor.columns; ++column) {
        float values[transformed_rows];
        for (std::int64_t i = 0; i < transformed_rows; ++i) values[i] = tensor.data[(row + i) * tensor.columns + column];
        transform(values);
        for (std::int64_t i = 0; i < transformed_rows; ++i) tensor.data[(row + i) * tensor.columns + column] = values[i];
      }
    }
  }
};

void round_tensors(const HostTensor& y, const Rounding& rounding, const CastAttributes& attributes) {
  const std::int64_t columns = columns_of(y.shape);
  float* data = y.f32();
  if (attributes.rows.empty()) return rounding.apply({data, rows_of(y.shape), columns});
  for (const std::int32_t rows : attributes.rows) {
    rounding.apply({data, rows, columns});
    data += rows * columns;
  }
}

}  // namespace

OpCost cast_cost(std::span<const OperandType> operands, const OpAttributes&) {
  Bytes bytes = 0;
  for (const OperandType& operand : operands) {
    expect_shapes(operand.shape == operands.front().shape, "cast keeps the shape");
    bytes += operand.bytes();
  }
  return memory_cost(bytes);
}

void cast_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto* attributes = std::get_if<CastAttributes>(&any);
  const bool in_place = attributes != nullptr && attributes->in_place;
  const HostTensor& x = in_place ? operands.back() : operands.front();
  if (attributes != nullptr && !attributes->rows.empty()) {
    std::int64_t rows = 0;
    for (const std::int32_t of_tensor : attributes->rows) rows += of_tensor;
    expect_shapes(rows == rows_of(x.shape), "cast needs the rows of its tensors");
  }
  const bool rounds = attributes != nullptr && attributes->to != NarrowType::none;
  const auto write = [&](const HostTensor& y, bool by_column) {
    expect_shapes(y.shape == x.shape, "cast keeps the shape");
    if (y.data != x.data) std::copy_n(x.f32(), x.shape.elements(), y.f32());
    if (rounds) round_tensors(y, Rounding(*attributes, by_column), *attributes);
  };
  if (in_place) {
    if (operands.size() > 1) write(operands.front(), true);
    return write(x, false);
  }
  for (std::size_t i = 1; i < operands.size(); ++i) write(operands[i], i == 2);
}

}  // namespace tandem
