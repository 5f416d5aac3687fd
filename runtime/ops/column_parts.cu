#include <algorithm>

#include "runtime/cuda/module/copy_boxes.h"
#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/column_parts.h"
#include "runtime/ops/column_parts_layout.h"

// Each moves the bytes of its cost: a rank's share of a part is a box of rows, and boxes are copied. What is unpacked of a part
// with repeats is a sum.
namespace tandem {
namespace {

/// Of x where a part lies in it by `column`, the sums of its repeats in `flat`, which begins with the part.
template <typename Element>
struct RepeatSum {
  static constexpr int vector = vector_of<Element>;
  const Element* flat;
  Element* x;
  std::int64_t width, share, rows, repeats;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t row, std::int64_t column) const {
    const std::int64_t first = column / share;
    float sums[n] = {};
    for (std::int64_t r = 0; r < repeats; ++r) {
      float values[n];
      load(flat + ((first * repeats + r) * rows + row) * share + column - first * share, values);
      for (int i = 0; i < n; ++i) sums[i] += values[i];
    }
    store(x + row * width + column, sums);
  }
};

/// Appends the boxes of a part: those whose ranks are `repeats` apart lie at equal distances both in a row and in `flat`.
void append_part(std::vector<Box>& boxes, const ColumnPartsLayout& layout, int part, const DeviceTensor& from,
                 const DeviceTensor& to, bool to_rows) {
  const std::int64_t rows = layout.positions * layout.batch, width = layout.width(), share = layout.share(part);
  const std::int64_t repeats = std::min(layout.repeats[part], layout.ranks), groups = divide_up(layout.ranks, repeats);
  for (std::int64_t r = 0; r < repeats; ++r) {
    const std::int64_t count = groups - (r + (groups - 1) * repeats < layout.ranks ? 0 : 1);
    const BoxSide in_rows{layout.column(part, r), {share, width}};
    const BoxSide in_flat{layout.flat({part, r, 0, 0}), {repeats * rows * share, share}};
    boxes.push_back({&from, &to, {count, rows, share}, to_rows ? in_flat : in_rows, to_rows ? in_rows : in_flat});
  }
}

void unpack(const Queue& queue, const ColumnPartsLayout& layout, const DeviceTensor& flat, const DeviceTensor& x) {
  const std::int64_t rows = layout.positions * layout.batch;
  std::vector<Box> boxes;
  for (int part = 0; part < layout.parts; ++part) {
    if (layout.repeats[part] == 1) {
      append_part(boxes, layout, part, flat, x, true);
      continue;
    }
    with_type(x.dtype, [&]<typename Element>(Type<Element>) {
      const std::int64_t share = layout.share(part), from = layout.flat({part, 0, 0, 0}), to = layout.column(part, 0);
      constexpr int vector = RepeatSum<Element>::vector;
      const bool aligned = are_aligned({flat, x}, vector) && from % vector == 0 && to % vector == 0 && share % vector == 0 &&
                           layout.width() % vector == 0;
      launch_by_rows("pack_parts", queue, rows, layout.widths[part], aligned,
                     RepeatSum<Element>{flat.template as<const Element>() + from, x.template as<Element>() + to, layout.width(),
                                        share, rows, layout.repeats[part]});
    });
  }
  if (!boxes.empty()) copy_boxes("pack_parts", queue, boxes);
}

/// Appends the boxes of a part: a rank's rows are one run of the sequence's, and the ranks' follow each other; in zigzag they are
/// two, of which the second ones follow each other backwards from the end.
void append_ordered(std::vector<Box>& boxes, const ColumnPartsLayout& layout, int part, const DeviceTensor& from,
                    const DeviceTensor& to, bool to_flat) {
  const std::int64_t rows = layout.positions * layout.batch, width = layout.width_of_shares(), share = layout.share(part);
  const std::int64_t column = layout.column_of_share(part), flat = layout.flat({part, 0, 0, 0});
  const auto append = [&](std::int64_t first_row, std::int64_t count, std::int64_t row_of_sequence, std::int64_t rows_apart) {
    const BoxSide in_rows{row_of_sequence * width + column, {rows_apart * width, width}};
    const BoxSide in_flat{flat + first_row * share, {rows * share, share}};
    boxes.push_back({&from, &to, {layout.ranks, count, share}, to_flat ? in_rows : in_flat, to_flat ? in_flat : in_rows});
  };
  if (!layout.zigzag) return append(0, rows, 0, rows);
  const std::int64_t half = rows / 2;
  append(0, half, 0, half);
  append(half, half, (2 * layout.ranks - 1) * half, -half);
}

}  // namespace

void pack_parts_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [from, to] = checked<2>(OpKind::pack_parts, operands, any);
  expect_types(of_one_type(from, to), "parts keep the type");
  const auto& attributes = std::get<ColumnPartsAttributes>(any);
  const ColumnPartsLayout layout = layout_of_packed(attributes, from.shape, to.shape);
  if (attributes.inverse) return unpack(queue, layout, from, to);
  std::vector<Box> boxes;
  for (int part = 0; part < layout.parts; ++part) append_part(boxes, layout, part, from, to, false);
  copy_boxes("pack_parts", queue, boxes);
}

void order_parts_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [from, to] = checked<2>(OpKind::order_parts, operands, any);
  expect_types(of_one_type(from, to), "parts keep the type");
  const auto& attributes = std::get<ColumnPartsAttributes>(any);
  const ColumnPartsLayout layout = layout_of_ordered(attributes, from.shape, to.shape);
  std::vector<Box> boxes;
  for (int part = 0; part < layout.parts; ++part) append_ordered(boxes, layout, part, from, to, attributes.inverse);
  copy_boxes("order_parts", queue, boxes);
}

}  // namespace tandem
