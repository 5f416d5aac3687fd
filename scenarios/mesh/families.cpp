#include "scenarios/mesh/families.h"

#include <stdexcept>

namespace tandem::scenarios {
namespace {

struct Family {
  std::string_view name;
  Axis axis;
};

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
      return {name_of(Axis::cp), Axis::cp};
    case Slot::context_heads:
      return {"cp heads", Axis::cp};
    case Slot::sequence_load:
      return {"sequence load", Axis::cp};
    case Slot::context_exchange:
      return {"cp exchange", Axis::cp};
    case Slot::send_context:
    case Slot::receive_context:
      return {"cp ring", Axis::cp};
    case Slot::expert:
      return {name_of(Axis::ep), Axis::ep};
    case Slot::expert_tensor:
      return {"etp", Axis::tp};
    case Slot::expert_data:
      return {"expert dp", Axis::dp};
    case Slot::expert_data_exchange:
      return {"expert dp exchange", Axis::dp};
    case Slot::gradient_norm:
      return {"gradient norm", Axis::dp};
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

std::string_view family_of(Slot slot) { return describe(slot).name; }

Axis axis_of(Slot slot) { return describe(slot).axis; }

}  // namespace tandem::scenarios
