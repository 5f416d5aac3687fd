#include "runtime/ops/cast.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "runtime/base/hash.h"
#include "runtime/ops/narrow.h"
#include "runtime/ops/operands.h"

namespace tandem {
namespace {

constexpr std::int64_t transformed = 16;  ///< rows that a Hadamard matrix mixes
/// Of D: TE draws them once, too, and keeps them for all steps.
constexpr std::uint32_t signs_of_transform = 0xB5E1U;

NarrowFormat format_of(NarrowType type) {
  switch (type) {
    case NarrowType::e4m3:
      return e4m3_format;
    case NarrowType::e5m2:
      return e5m2_format;
    case NarrowType::e2m1:
      return e2m1_format;
    case NarrowType::none:
      break;
  }
  throw std::logic_error("cast rounds to no type");
}

/// Rows and columns of a block that shares a scale, where the depth lies along columns; 0: all of the tensor.
struct BlockShape {
  std::int64_t rows = 0, columns = 0;
};
BlockShape block_of(Scaling scaling) {
  switch (scaling) {
    case Scaling::none:
    case Scaling::tensor:
      break;
    case Scaling::blocks_128:
      return {1, 128};
    case Scaling::blocks_32:
      return {1, 32};
    case Scaling::blocks_16:
      return {1, 16};
    case Scaling::squares_128:
      return {128, 128};
    case Scaling::squares_16:
      return {16, 16};
  }
  return {};
}

/// A matrix inside a host tensor.
struct Rows {
  float* data = nullptr;
  std::int64_t rows = 0, columns = 0;
};

/// One of the outputs of a cast: how it is scaled and rounded.
class Rounding {
 public:
  Rounding(const CastAttributes& attributes, bool by_column)
      : attributes_(attributes), format_(format_of(attributes.to)), by_column_(by_column) {
    block_ = block_of(attributes.scaling);
    if (by_column) std::swap(block_.rows, block_.columns);
    key_ = hash(static_cast<std::uint64_t>(static_cast<std::uint32_t>(attributes.seed)) << 1U | (by_column ? 1U : 0U));
  }

  void apply(const Rows& tensor) const {
    if (by_column_ && attributes_.transforms) transform(tensor);
    const float largest = largest_in(tensor, 0, 0, tensor.rows, tensor.columns);
    const std::int64_t height = block_.rows > 0 ? block_.rows : std::max<std::int64_t>(1, tensor.rows);
    const std::int64_t width = block_.columns > 0 ? block_.columns : std::max<std::int64_t>(1, tensor.columns);
    for (std::int64_t row = 0; row < tensor.rows; row += height)
      for (std::int64_t column = 0; column < tensor.columns; column += width)
        round_block(tensor, row, column, std::min(row + height, tensor.rows), std::min(column + width, tensor.columns), largest);
  }

 private:
  const CastAttributes& attributes_;
  NarrowFormat format_;
  bool by_column_;
  BlockShape block_;
  std::uint64_t key_ = 0;

  static float largest_in(const Rows& tensor, std::int64_t row, std::int64_t column, std::int64_t end_row,
                          std::int64_t end_column) {
    float largest = 0;
    for (std::int64_t r = row; r < end_row; ++r)
      for (std::int64_t c = column; c < end_column; ++c)
        largest = std::max(largest, std::fabs(tensor.data[r * tensor.columns + c]));
    return largest;
  }

  float scale_of(float largest, float of_tensor) const {
    if (!(largest > 0)) return 1;
    switch (attributes_.scaling) {
      case Scaling::none:
        break;
      case Scaling::tensor:
        return largest / format_.largest;
      case Scaling::blocks_128:
      case Scaling::squares_128:
      case Scaling::blocks_32:
        return power_not_below(largest / format_.largest);
      case Scaling::blocks_16:
      case Scaling::squares_16: {
        const float global = of_tensor / (format_.largest * e4m3_format.largest);
        const float block = to_nearest(e4m3_format, largest / format_.largest / global);
        return block > 0 ? block * global : 1;
      }
    }
    return 1;
  }

  void round_block(const Rows& tensor, std::int64_t row, std::int64_t column, std::int64_t end_row, std::int64_t end_column,
                   float of_tensor) const {
    const float largest = largest_in(tensor, row, column, end_row, end_column);
    const float scale = scale_of(largest, of_tensor);
    for (std::int64_t r = row; r < end_row; ++r) {
      for (std::int64_t c = column; c < end_column; ++c) {
        float& x = tensor.data[r * tensor.columns + c];
        x = scale * rounded(x / scale, x);
      }
    }
  }

  float rounded(float scaled, float x) const {
    if (!attributes_.stochastic) return to_nearest(format_, scaled);
    return to_either(format_, scaled, static_cast<std::uint32_t>(hash(key_ ^ std::bit_cast<std::uint32_t>(x)) >> 32U));
  }

  static void transform(const Rows& tensor) {
    for (std::int64_t row = 0; row + transformed <= tensor.rows; row += transformed) {
      for (std::int64_t column = 0; column < tensor.columns; ++column) {
        float values[transformed];
        for (std::int64_t i = 0; i < transformed; ++i) {
          const float x = tensor.data[(row + i) * tensor.columns + column];
          values[i] = (signs_of_transform >> static_cast<unsigned>(i) & 1U) != 0 ? -x : x;
        }
        for (std::int64_t half = 1; half < transformed; half *= 2) {
          for (std::int64_t i = 0; i < transformed; ++i) {
            if ((i & half) != 0) continue;
            const float a = values[i], b = values[i + half];
            values[i] = a + b;
            values[i + half] = a - b;
          }
        }
        for (std::int64_t i = 0; i < transformed; ++i) tensor.data[(row + i) * tensor.columns + column] = values[i] / 4;
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
