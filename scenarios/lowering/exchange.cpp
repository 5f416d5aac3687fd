#include "scenarios/lowering/exchange.h"

namespace tandem::scenarios {
namespace {

constexpr std::int64_t elements_of_scale = 128;

bool uses_deepep(const Context& context) {
  return context.scenario.parallelism.dispatcher == Dispatcher::deepep && context.communicator(Slot::expert) != no_id;
}

bool sends_fp8(const Context& context) { return uses_deepep(context) && context.scenario.training.precision == DType::f8; }

Bytes bytes_in_fp8(const Shape& shape) {
  const std::int64_t elements = shape.elements();
  return elements * size_of(DType::f8) + (elements + elements_of_scale - 1) / elements_of_scale * size_of(DType::f32);
}

}  // namespace

BufferId exchange(Context& context, BufferId rows, Way way, std::string_view name) {
  if (context.communicator(Slot::expert) == no_id) {
    context.exchange_under_way();
    return rows;
  }
  const Shape shape = context.shape_of(rows);
  const BufferId arrived = context.gathered(shape);
  const Bytes sent = way == Way::dispatch && sends_fp8(context) ? bytes_in_fp8(shape) : 0;
  context.collective(OpKind::all_to_all, Slot::expert, Stream::ep, name, rows, arrived, Reduction::sum, sent);
  context.exchange_under_way();
  return arrived;
}

OpAttributes at_exchange(const Context& context) {
  if (!uses_deepep(context)) return {};
  return FusedAttributes{};
}

void arrive_in_fp8(Context& context, BufferId rows) {
  if (!sends_fp8(context)) return;
  const Shape shape = context.shape_of(rows);
  const GemmOperand arrived{context.activation(shape, DType::f8), context.activation(shape, DType::f8)};
  context.kernel(OpKind::cast, FusedAttributes{}, "cast", {rows}, {arrived.by_row, arrived.by_column});
  context.fp8_operands[rows] = arrived;
}

}  // namespace tandem::scenarios
