#include "scenarios/lowering/exchange.h"

#include <algorithm>

#include "scenarios/mesh/expert_mesh.h"

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

/// What DeepEP's kernels send beside the rows: their gates, where the scenario has them travel. HybridEP's dispatch takes gates
/// along in any case, and its backward their gradients: with each token one for every expert of the node that it goes to.
Bytes bytes_beside_rows(const Context& context, const Rows& sent, const std::string& name) {
  if (context.scenario.parallelism.dispatcher != Dispatcher::hybridep)
    return sent.gates == no_id ? 0 : bytes_of(context, sent.gates);
  if (name != "dispatch") return 0;
  const std::int64_t of_node = context.scenario.model.moe.experts / expert_nodes(context.scenario);
  return context.shape_of(sent.rows)[0] * std::max<std::int64_t>(1, of_node) * size_of(DType::f32);
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
    if (uses_deepep(context)) bytes += bytes_beside_rows(context, sent, name);
    if (sent.gates != no_id)
      arrived.gates = all_to_all(context, sent.gates, gates_of(name), uses_deepep(context) ? 0 : bytes_of(context, sent.gates));
    arrived.rows = all_to_all(context, sent.rows, name, bytes);
  }
  context.exchange_under_way();
  return arrived;
}

void gather_routing(Context& context, BufferId gates) {
  if (context.communicator(Slot::routing) == no_id) return;
  const MoeSpec& moe = context.scenario.model.moe;
  const std::int64_t chosen = context.shape_of(gates).elements(), ranks = context.scenario.parallelism.ep;
  const BufferId all = context.gathered(Shape(ranks * chosen), context.type_of(gates));
  context.collective(OpKind::all_gather, Slot::routing, Stream::ep, "routing", gates, all, Reduction::sum,
                     ranks * chosen / moe.top_k * moe.experts);
}

OpAttributes at_exchange(const Context& context) {
  if (!uses_deepep(context)) return {};
  return FusedAttributes{};
}

void arrive_in_fp8(Context& context, BufferId rows, OperandRole role, const std::vector<std::int32_t>& by_expert) {
  if (sends_fp8(context)) cast_where_made(context, rows, role, by_expert);
}

}  // namespace tandem::scenarios
