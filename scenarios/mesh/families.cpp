#include "scenarios/mesh/families.h"

#include <array>
#include <bit>
#include <stdexcept>

namespace tandem::scenarios {
namespace {

struct Family {
  std::string_view name;
  Axis axis;
};

struct GroupSlots {
  Slot of_all, first;  ///< among all ranks; of groups of two
};
constexpr std::array group_slots{GroupSlots{Slot::context, Slot::context_groups},
                                 GroupSlots{Slot::send_context, Slot::send_context_groups},
                                 GroupSlots{Slot::receive_context, Slot::receive_context_groups},
                                 GroupSlots{Slot::context_exchange, Slot::context_exchange_groups}};

/// Without a default, so that the compiler asks for what a new slot is called.
Family describe(Slot slot) {
  switch (slot) {
    case Slot::tp:
      return {name_of(Axis::tp), Axis::tp};
    case Slot::send_tensor:
    case Slot::receive_tensor:
      return {"tp ring", Axis::tp};
    case Slot::kv_replicas:
      return {"kv replicas", Axis::tp};
    case Slot::data:
      return {name_of(Axis::dp), Axis::dp};
    case Slot::data_exchange:
      return {"dp exchange", Axis::dp};
    case Slot::data_block:
      return {"dp block", Axis::dp};
    case Slot::data_across:
      return {"dp across blocks", Axis::dp};
    case Slot::replicas:
      return {"dp replicas", Axis::dp};
    case Slot::context:
    case Slot::context_groups:
      return {name_of(Axis::cp), Axis::cp};
    case Slot::context_heads:
      return {"cp heads", Axis::cp};
    case Slot::sequence_load:
      return {"sequence load", Axis::cp};
    case Slot::context_exchange:
    case Slot::context_exchange_groups:
      return {"cp exchange", Axis::cp};
    case Slot::send_context:
    case Slot::receive_context:
    case Slot::send_context_groups:
    case Slot::receive_context_groups:
      return {"cp ring", Axis::cp};
    case Slot::expert:
      return {name_of(Axis::ep), Axis::ep};
    case Slot::routing:
      return {"routing", Axis::ep};
    case Slot::expert_tensor:
      return {"etp", Axis::tp};
    case Slot::expert_data:
      return {"expert dp", Axis::dp};
    case Slot::expert_data_exchange:
      return {"expert dp exchange", Axis::dp};
    case Slot::gradient_norm:
      return {"gradient norm", Axis::dp};
    case Slot::amax:
      return {"amax", Axis::dp};
    case Slot::expert_load:
      return {"expert load", Axis::dp};
    case Slot::embedding:
      return {"embedding", Axis::pp};
    case Slot::to_host:
      return {"to host", Axis::host};
    case Slot::from_host:
      return {"from host", Axis::host};
    case Slot::mirror:
      return {"mirror", Axis::pp};
    case Slot::send_forward:
    case Slot::receive_forward:
    case Slot::send_forward_descending:
    case Slot::receive_forward_descending:
      return {"pp forward", Axis::pp};
    case Slot::send_backward:
    case Slot::receive_backward:
    case Slot::send_backward_descending:
    case Slot::receive_backward_descending:
      return {"pp backward", Axis::pp};
  }
  throw std::logic_error("no such slot");
}

}  // namespace

std::string_view family_of(Slot slot) { return describe(context_group_of(slot).first).name; }

Axis axis_of(Slot slot) { return describe(context_group_of(slot).first).axis; }

Slot slot_of_context_group(Slot slot, std::int64_t ranks) {
  const auto level = std::countr_zero(static_cast<std::uint64_t>(ranks)) - 1;
  for (const GroupSlots& slots : group_slots)
    if (slots.of_all == slot) return static_cast<Slot>(static_cast<int>(slots.first) + level);
  return slot;
}

std::pair<Slot, std::int64_t> context_group_of(Slot slot) {
  for (const GroupSlots& slots : group_slots) {
    const int level = static_cast<int>(slot) - static_cast<int>(slots.first);
    if (level >= 0 && level < context_group_sizes) return {slots.of_all, std::int64_t{2} << level};
  }
  return {slot, 0};
}

}  // namespace tandem::scenarios
