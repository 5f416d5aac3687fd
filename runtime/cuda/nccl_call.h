#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/dag/dag.h"

namespace tandem {

/// The NCCL function of the same name.
enum class NcclFunction : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  reduce,
  gather,
  scatter,
  send,
  receive
};

enum class NcclType : std::uint8_t {
  f32,
  bf16,
  f16,
  u8,  ///< fp8 that is moved, not reduced
  i32
};

/// The call that one member of a collective makes, on the communicator whose ranks are the members in their order.
struct NcclCall {
  NcclFunction function = NcclFunction::all_reduce;
  std::size_t count = 0;  ///< elements, as the function counts: of a shard for all_gather, reduce_scatter, gather and scatter, of
                          ///< what goes to one member for all_to_all
  NcclType type = NcclType::f32;
  Reduction reduction = Reduction::sum;
  int peer = 0;           ///< the root, or the other side of a transfer: its rank in the communicator
  BufferId send = no_id;  ///< none: null
  BufferId receive = no_id;
  bool own_memory = false;  ///< a barrier: one element that belongs to no buffer is all-reduced in place
};

/// Returns the NCCL call that a communication task makes. The operands' conventions are those of runtime/host/collectives.h;
/// where they let a shard lie in its place of the whole, NCCL works in place. Throws std::logic_error when the operands' sizes do
/// not fit together, std::runtime_error when fp8 is to be reduced: every rank scales its own by another factor.
NcclCall plan_call(const Dag& dag, TaskId id);

}  // namespace tandem
