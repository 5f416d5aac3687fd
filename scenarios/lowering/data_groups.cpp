#include "scenarios/lowering/data_groups.h"

namespace tandem::scenarios {
namespace {

bool in_blocks(const Context& context, ParameterKind kind) {
  return kind != ParameterKind::expert && context.communicator(Slot::data_block) != no_id;
}

bool hierarchical(const Context& context, ParameterKind kind) {
  return in_blocks(context, kind) && context.scenario.training.hierarchical_all_reduce;
}

/// What the reduce-scatter in the node leaves to this rank.
BufferId node_part(Context& context, BufferId whole) {
  const PlaceInGroup place = place_in(context.world, context.rank, Slot::data_block);
  const std::int64_t elements = context.shape_of(whole).elements() / place.of;
  return context.builder.view(whole, place.at * elements, Shape(elements));
}

TaskId lower(Context& context, OpKind op, Slot slot, BufferId in, BufferId out) {
  return context.collective(op, slot, Stream::dp, "gradients", in, out);
}

/// Scales follow from maxima that all know: the numbers alone travel.
TaskId gather(Context& context, Slot slot, BufferId slice, BufferId whole) {
  const Bytes sent = size_of(context.type_of(whole), context.shape_of(whole).elements());
  return context.collective(OpKind::all_gather, slot, Stream::dp, "parameters", slice, whole, Reduction::sum, sent);
}

}  // namespace

const Ownership& ownership_of(const Context& context, ParameterKind kind) {
  return kind == ParameterKind::expert ? context.sizes.expert_ownership : context.sizes.ownership;
}

Slot data_slot(ParameterKind kind) { return kind == ParameterKind::expert ? Slot::expert_data : Slot::data; }

Slot data_exchange_slot(ParameterKind kind) {
  return kind == ParameterKind::expert ? Slot::expert_data_exchange : Slot::data_exchange;
}

bool shares_weights(const Context& context, ParameterKind kind) {
  return in_blocks(context, kind) || context.communicator(data_slot(kind)) != no_id;
}

TaskId reduce_to_slices(Context& context, ParameterKind kind, BufferId whole, BufferId slice) {
  const bool sliced = context.scenario.parallelism.zero >= 1;
  if (hierarchical(context, kind)) {
    const BufferId part = node_part(context, whole);
    lower(context, OpKind::reduce_scatter, Slot::data_block, whole, part);
    if (sliced) return lower(context, OpKind::reduce_scatter, Slot::data_across, part, slice);
    lower(context, OpKind::all_reduce, Slot::data_across, part, part);
    return context.collective(OpKind::all_gather, Slot::data_block, Stream::dp, "gradients", part, whole);
  }
  if (in_blocks(context, kind)) {
    lower(context, OpKind::reduce_scatter, Slot::data_block, whole, slice);
    return lower(context, OpKind::all_reduce, Slot::data_across, slice, slice);
  }
  const Slot all = data_slot(kind);
  if (context.communicator(all) == no_id) return no_id;
  if (sliced) return lower(context, OpKind::reduce_scatter, all, whole, slice);
  return lower(context, OpKind::all_reduce, all, whole, whole);
}

TaskId gather_slices(Context& context, ParameterKind kind, BufferId slice, BufferId whole) {
  if (!hierarchical(context, kind)) {
    return gather(context, in_blocks(context, kind) ? Slot::data_block : data_slot(kind), slice, whole);
  }
  const BufferId part = node_part(context, whole);
  const TaskId first = gather(context, Slot::data_across, slice, part);
  gather(context, Slot::data_block, part, whole);
  return first;
}

void add_up_slices(Context& context, ParameterKind kind, BufferId numbers, std::string_view name) {
  if (ownership_of(context, kind).owners == 1) return;
  const auto add_up = [&](Slot slot) { context.collective(OpKind::all_reduce, slot, Stream::dp, name, numbers, numbers); };
  add_up(in_blocks(context, kind) ? Slot::data_block : data_slot(kind));
  if (hierarchical(context, kind)) add_up(Slot::data_across);
}

}  // namespace tandem::scenarios
