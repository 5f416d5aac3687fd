#pragma once

#include <cstdint>

#include "runtime/base/host_device.h"
#include "runtime/ops/operands.h"

namespace tandem {

/// Where the elements of column_parts.h lie; for host and device kernels alike.
struct ColumnPartsLayout {
  static constexpr int most_parts = 8;
  int parts = 0;
  std::int64_t ranks = 1, batch = 1, positions = 0;  ///< of one rank
  bool zigzag = false;
  std::int64_t widths[most_parts] = {}, repeats[most_parts] = {};

  ColumnPartsLayout() = default;
  /// `batch` and `positions` are those of the rows, `positions` of one rank.
  ColumnPartsLayout(const ColumnPartsAttributes& attributes, std::int64_t positions_of_rank, std::int64_t rows_of_position)
      : parts(static_cast<int>(attributes.widths.size())),
        ranks(attributes.ranks),
        batch(rows_of_position),
        positions(positions_of_rank),
        zigzag(attributes.zigzag) {
    expect_shapes(parts > 0 && parts <= most_parts && attributes.repeats.size() == attributes.widths.size(),
                  "a row has 1 to 8 parts, each with its repeats");
    for (int i = 0; i < parts; ++i) {
      widths[i] = attributes.widths[static_cast<std::size_t>(i)];
      repeats[i] = attributes.repeats[static_cast<std::size_t>(i)];
      expect_shapes(widths[i] * repeats[i] % ranks == 0, "a part is shared out evenly");
    }
    expect_shapes(!zigzag || positions % 2 == 0, "zigzag ranks hold two runs of positions");
  }

  TANDEM_HOST_DEVICE std::int64_t share(int part) const { return widths[part] * repeats[part] / ranks; }
  TANDEM_HOST_DEVICE std::int64_t width() const { return sum_of_parts(parts, false); }
  TANDEM_HOST_DEVICE std::int64_t width_of_shares() const { return sum_of_parts(parts, true); }
  TANDEM_HOST_DEVICE std::int64_t flat_elements() const { return positions * batch * ranks * width_of_shares(); }

  /// The column of a row where a rank's share begins.
  TANDEM_HOST_DEVICE std::int64_t column(int part, std::int64_t rank) const {
    return sum_of_parts(part, false) + rank / repeats[part] * share(part);
  }
  /// Where in a row of shares a part begins.
  TANDEM_HOST_DEVICE std::int64_t column_of_share(int part) const { return sum_of_parts(part, true); }

  /// The row of the sequence that is row (t, b) of a rank.
  TANDEM_HOST_DEVICE std::int64_t row_of_sequence(std::int64_t rank, std::int64_t row) const {
    const std::int64_t t = row / batch, half = positions / 2;
    std::int64_t position = rank * positions + t;
    if (zigzag) position = t < half ? rank * half + t : (2 * ranks - 1 - rank) * half + t - half;
    return position * batch + row % batch;
  }

  struct Place {
    int part;
    std::int64_t rank, row, column;  ///< the column within the share
  };
  TANDEM_HOST_DEVICE Place place(std::int64_t flat) const {
    const std::int64_t rows = positions * batch;
    int part = 0;
    while (flat >= rows * ranks * share(part)) flat -= rows * ranks * share(part++);
    const std::int64_t width = share(part);
    return {part, flat / (rows * width), flat / width % rows, flat % width};
  }
  TANDEM_HOST_DEVICE std::int64_t flat(const Place& p) const {
    const std::int64_t rows = positions * batch, width = share(p.part);
    return rows * ranks * column_of_share(p.part) + (p.rank * rows + p.row) * width + p.column;
  }

 private:
  TANDEM_HOST_DEVICE std::int64_t sum_of_parts(int count, bool of_shares) const {
    std::int64_t sum = 0;
    for (int i = 0; i < count; ++i) sum += of_shares ? share(i) : widths[i];
    return sum;
  }
};

/// Of the operands of pack_parts, and of order_parts.
inline ColumnPartsLayout layout_of_packed(const ColumnPartsAttributes& attributes, const Shape& first, const Shape& second) {
  const Shape &rows = attributes.inverse ? second : first, &flat = attributes.inverse ? first : second;
  expect_shapes(rows.rank == 3, "rows are [s,b,W]");
  const ColumnPartsLayout layout(attributes, rows[0], rows[1]);
  expect_shapes(columns_of(rows) == layout.width() && flat.elements() == layout.flat_elements(),
                "parts are as wide as a row, and their shares fill the other operand");
  return layout;
}

inline ColumnPartsLayout layout_of_ordered(const ColumnPartsAttributes& attributes, const Shape& first, const Shape& second) {
  const Shape &flat = attributes.inverse ? second : first, &rows = attributes.inverse ? first : second;
  expect_shapes(rows.rank == 3 && rows[0] % attributes.ranks == 0, "rows are [ranks s,b,W']");
  const ColumnPartsLayout layout(attributes, rows[0] / attributes.ranks, rows[1]);
  expect_shapes(columns_of(rows) == layout.width_of_shares() && flat.elements() == layout.flat_elements(),
                "shares are as wide as a row, and fill the other operand");
  return layout;
}

}  // namespace tandem
