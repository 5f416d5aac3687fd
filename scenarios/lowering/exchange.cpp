#include "scenarios/lowering/exchange.h"

#include <utility>

namespace tandem::scenarios {
namespace {

constexpr std::int64_t elements_of_scale = 128;

bool uses_deepep(const Context& context) {
  return sends_once(context.scenario.parallelism.dispatcher) && context.communicator(Slot::expert) != no_id;
}

bool sends_fp8(const Context& context) {
  return uses_deepep(context) && context.scenario.training.precision == DType::f8 && context.scenario.casts_in(context.layer) &&
         context.scenario.software.fp8_dispatch;
}

Bytes bytes_in_fp8(const Shape& shape) {
  const std::int64_t elements = shape.elements();
  return elements * size_of(DType::f8) + (elements + elements_of_scale - 1) / elements_of_scale * size_of(DType::f32);
}

Bytes bytes_of(const Context& context, BufferId buffer) {
  return context.shape_of(buffer).elements() * size_of(context.type_of(buffer));
}

BufferId all_to_all(Context& context, BufferId sent, const std::string& name, Bytes bytes) {
  const BufferId arrived = context.gathered(context.shape_of(sent), context.type_of(sent));
  context.collective(OpKind::all_to_all, Slot::expert, Stream::ep, name, sent, arrived, Reduction::sum, bytes);
  return arrived;
}

}  // namespace

std::string gates_of(const std::string& name) { return name + " gates"; }

Rows exchange(Context& context, const Rows& sent, Way way, const std::string& name) {
  Rows arrived = sent;
  if (context.communicator(Slot::expert) != no_id) {
    const bool in_fp8 = way == Way::dispatch && sends_fp8(context);
    Bytes bytes = in_fp8 ? bytes_in_fp8(context.shape_of(sent.rows)) : bytes_of(context, sent.rows);
    if (sent.gates != no_id) {
      Bytes of_gates = bytes_of(context, sent.gates);
      if (uses_deepep(context)) bytes += std::exchange(of_gates, 0);
      arrived.gates = all_to_all(context, sent.gates, gates_of(name), of_gates);
    }
    arrived.rows = all_to_all(context, sent.rows, name, bytes);
  }
  context.exchange_under_way();
  return arrived;
}

OpAttributes at_exchange(const Context& context) {
  if (!uses_deepep(context)) return {};
  return FusedAttributes{};
}

void arrive_in_fp8(Context& context, BufferId rows, OperandRole role, const std::vector<std::int32_t>& by_expert) {
  if (sends_fp8(context)) cast_where_made(context, rows, role, by_expert);
}

}  // namespace tandem::scenarios
