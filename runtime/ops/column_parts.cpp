#include "runtime/ops/column_parts.h"

#include <algorithm>

#include "runtime/ops/column_parts_layout.h"

namespace tandem {

OpCost pack_parts_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [from, to] = unpack<2>(operands, "pack_parts");
  layout_of_packed(std::get<ColumnPartsAttributes>(any), from.shape, to.shape);
  return memory_cost(bytes_of(from, to));
}

void pack_parts_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<ColumnPartsAttributes>(any);
  const auto [from, to] = unpack<2>(operands, "pack_parts");
  const ColumnPartsLayout layout = layout_of_packed(attributes, from.shape, to.shape);
  if (attributes.inverse) std::fill_n(to.f32(), to.shape.elements(), 0.0F);
  for (std::int64_t i = 0; i < layout.flat_elements(); ++i) {
    const ColumnPartsLayout::Place p = layout.place(i);
    const std::int64_t at = p.row * layout.width() + layout.column(p.part, p.rank) + p.column;
    if (attributes.inverse)
      to.f32()[at] += from.f32()[i];
    else
      to.f32()[i] = from.f32()[at];
  }
}

OpCost order_parts_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [from, to] = unpack<2>(operands, "order_parts");
  layout_of_ordered(std::get<ColumnPartsAttributes>(any), from.shape, to.shape);
  return memory_cost(bytes_of(from, to));
}

void order_parts_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<ColumnPartsAttributes>(any);
  const auto [from, to] = unpack<2>(operands, "order_parts");
  const ColumnPartsLayout layout = layout_of_ordered(attributes, from.shape, to.shape);
  for (std::int64_t i = 0; i < layout.flat_elements(); ++i) {
    const ColumnPartsLayout::Place p = layout.place(i);
    const std::int64_t at =
        layout.row_of_sequence(p.rank, p.row) * layout.width_of_shares() + layout.column_of_share(p.part) + p.column;
    if (attributes.inverse)
      to.f32()[i] = from.f32()[at];
    else
      to.f32()[at] = from.f32()[i];
  }
}

}  // namespace tandem
