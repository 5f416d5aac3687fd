#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/column_parts.h"
#include "runtime/ops/column_parts_layout.h"

// Each moves the bytes of its cost. Neighbouring threads take neighbouring columns of a share.
namespace tandem {
namespace {

template <typename Element>
struct Packing {
  static constexpr int vector = 1;
  ColumnPartsLayout layout;
  const Element* x;
  Element* flat;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    const ColumnPartsLayout::Place p = layout.place(i);
    flat[i] = x[p.row * layout.width() + layout.column(p.part, p.rank) + p.column];
  }
};

template <typename Element>
struct Unpacking {
  static constexpr int vector = 1;
  ColumnPartsLayout layout;
  const Element* flat;
  Element* x;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    const std::int64_t width = layout.width(), row = i / width;
    std::int64_t column = i % width;
    int part = 0;
    while (column >= layout.widths[part]) column -= layout.widths[part++];
    const std::int64_t share = layout.share(part), repeats = layout.repeats[part];
    float sum = 0;
    for (std::int64_t r = 0; r < repeats; ++r)
      sum += to_float(flat[layout.flat({part, column / share * repeats + r, row, column % share})]);
    x[i] = from_float<Element>(sum);
  }
};

template <typename Element, bool inverse>
struct Ordering {
  static constexpr int vector = 1;
  ColumnPartsLayout layout;
  const Element* from;
  Element* to;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    const ColumnPartsLayout::Place p = layout.place(i);
    const std::int64_t row =
        layout.row_of_sequence(p.rank, p.row) * layout.width_of_shares() + layout.column_of_share(p.part) + p.column;
    if (inverse)
      to[i] = from[row];
    else
      to[row] = from[i];
  }
};

}  // namespace

void pack_parts_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [from, to] = checked<2>(OpKind::pack_parts, operands, any);
  expect_types(of_one_type(from, to), "parts keep the type");
  const auto& attributes = std::get<ColumnPartsAttributes>(any);
  const ColumnPartsLayout layout = layout_of_packed(attributes, from.shape, to.shape);
  with_type(from.dtype, [&, from = from, to = to]<typename Element>(Type<Element>) {
    const auto* const in = from.template as<const Element>();
    auto* const out = to.template as<Element>();
    if (attributes.inverse)
      launch_elementwise("pack_parts", queue, to.shape.elements(), false, Unpacking<Element>{layout, in, out});
    else
      launch_elementwise("pack_parts", queue, to.shape.elements(), false, Packing<Element>{layout, in, out});
  });
}

void order_parts_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [from, to] = checked<2>(OpKind::order_parts, operands, any);
  expect_types(of_one_type(from, to), "parts keep the type");
  const auto& attributes = std::get<ColumnPartsAttributes>(any);
  const ColumnPartsLayout layout = layout_of_ordered(attributes, from.shape, to.shape);
  with_type(from.dtype, [&, from = from, to = to]<typename Element>(Type<Element>) {
    const auto* const in = from.template as<const Element>();
    auto* const out = to.template as<Element>();
    if (attributes.inverse)
      launch_elementwise("order_parts", queue, to.shape.elements(), false, Ordering<Element, true>{layout, in, out});
    else
      launch_elementwise("order_parts", queue, to.shape.elements(), false, Ordering<Element, false>{layout, in, out});
  });
}

}  // namespace tandem
