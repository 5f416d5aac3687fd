#include "scenarios/lowering/heads_exchange.h"

namespace tandem::scenarios {
namespace {

ColumnPartsAttributes attributes_of(const Context& context, const ColumnParts& parts, bool inverse) {
  ColumnPartsAttributes attributes{.ranks = static_cast<std::int32_t>(context.sizes.cp),
                                   .zigzag = context.sizes.zigzag,
                                   .inverse = inverse,
                                   .widths = {},
                                   .repeats = {}};
  for (const std::int64_t width : parts.widths) attributes.widths.push_back(static_cast<std::int32_t>(width));
  for (const std::int64_t repeats : parts.repeats) attributes.repeats.push_back(static_cast<std::int32_t>(repeats));
  return attributes;
}

std::int64_t width_of(const ColumnParts& parts) {
  std::int64_t width = 0;
  for (const std::int64_t part : parts.widths) width += part;
  return width;
}

/// Of a part's shares, over all ranks.
std::int64_t width_of_shares(const ColumnParts& parts, std::size_t part) { return parts.widths[part] * parts.repeats[part]; }
std::int64_t width_of_shares(const ColumnParts& parts) {
  std::int64_t width = 0;
  for (std::size_t i = 0; i < parts.widths.size(); ++i) width += width_of_shares(parts, i);
  return width;
}

BufferId all_to_alls(Context& context, const ColumnParts& parts, BufferId flat, std::string_view name) {
  const BufferId arrived = context.gathered(context.shape_of(flat));
  const std::int64_t rows = context.shape_of(flat).elements() / width_of_shares(parts);
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < parts.widths.size(); ++i) {
    const Shape shape(rows * width_of_shares(parts, i));
    context.collective(OpKind::all_to_all, Slot::context_exchange, Stream::cp, name, context.builder.view(flat, offset, shape),
                       context.builder.view(arrived, offset, shape));
    offset += shape.elements();
  }
  return arrived;
}

BufferId to_heads(Context& context, const ColumnParts& parts, BufferId x, const std::string& name) {
  const ColumnPartsAttributes attributes = attributes_of(context, parts, false);
  const Shape rows = context.shape_of(x);
  const std::int64_t cp = context.sizes.cp;
  const BufferId flat = context.activation(Shape(rows[0] * rows[1] * width_of_shares(parts)));
  const BufferId y = context.activation(Shape(rows[0] * cp, rows[1], width_of_shares(parts) / cp));
  context.kernel(OpKind::pack_parts, attributes, name + " pack", {x}, {flat});
  context.kernel(OpKind::order_parts, attributes, name + " order", {all_to_alls(context, parts, flat, name)}, {y});
  return y;
}

BufferId to_sequence(Context& context, const ColumnParts& parts, BufferId y, const std::string& name) {
  const ColumnPartsAttributes attributes = attributes_of(context, parts, true);
  const Shape rows = context.shape_of(y);
  const BufferId flat = context.activation(Shape(rows.elements()));
  const BufferId x = context.activation(Shape(rows[0] / context.sizes.cp, rows[1], width_of(parts)));
  context.kernel(OpKind::order_parts, attributes, name + " order", {y}, {flat});
  context.kernel(OpKind::pack_parts, attributes, name + " pack", {all_to_alls(context, parts, flat, name)}, {x});
  return x;
}

}  // namespace

BufferId sequence_to_heads(Context& context, Tape& tape, const ColumnParts& parts, BufferId x, std::string_view name) {
  if (context.sizes.cp == 1) return x;
  tape.push([=, name = std::string(name)](Context& c, BufferId dy) { return to_sequence(c, parts, dy, name); });
  return to_heads(context, parts, x, std::string(name));
}

BufferId heads_to_sequence(Context& context, Tape& tape, const ColumnParts& parts, BufferId y, std::string_view name) {
  if (context.sizes.cp == 1) return y;
  tape.push([=, name = std::string(name)](Context& c, BufferId dx) { return to_heads(c, parts, dx, name); });
  return to_sequence(context, parts, y, std::string(name));
}

}  // namespace tandem::scenarios
