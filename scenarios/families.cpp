#include "scenarios/families.h"

namespace tandem {

Axis axis_of(Slot slot) {
  switch (slot) {
    case Slot::tp:
    case Slot::kv_replicas:
      return Axis::tp;
    case Slot::context:
    case Slot::send_context:
    case Slot::receive_context:
      return Axis::cp;
    case Slot::expert:
      return Axis::ep;
    case Slot::expert_tensor:
      return Axis::tp;
    case Slot::data:
    case Slot::data_block:
    case Slot::data_across:
    case Slot::expert_data:
    case Slot::gradient_norm:
    case Slot::replicas:
      return Axis::dp;
    default:
      return Axis::pp;
  }
}

const char* family_of(Slot slot) {
  switch (slot) {
    case Slot::tp:
      return "tp";
    case Slot::kv_replicas:
      return "kv replicas";
    case Slot::data:
      return "dp";
    case Slot::context:
      return "cp";
    case Slot::send_context:
    case Slot::receive_context:
      return "cp ring";
    case Slot::data_block:
      return "dp block";
    case Slot::data_across:
      return "dp across blocks";
    case Slot::expert:
      return "ep";
    case Slot::expert_tensor:
      return "etp";
    case Slot::expert_data:
      return "expert dp";
    case Slot::gradient_norm:
      return "gradient norm";
    case Slot::embedding:
      return "embedding";
    case Slot::replicas:
      return "dp replicas";
    case Slot::mirror:
      return "mirror";
    case Slot::send_forward:
    case Slot::send_forward_descending:
      return "pp forward";
    default:
      return "pp backward";
  }
}

}  // namespace tandem
