#pragma once

#include <array>

#include "runtime/dag/dag.h"
#include "scenarios/mesh/world.h"

namespace tandem::scenarios {

/// The way of a pipeline's messages in one direction.
struct PipelineChannel {
  Slot send, receive;
  Stream send_stream, receive_stream;
};

/// By direction, forwards before backwards: of the copy of the model whose forwards go from lower stages to higher ones, and of
/// the one whose forwards go the other way (zb-v, dualpipe).
struct ChannelsOfCopies {
  PipelineChannel ascending, descending;
};
inline constexpr std::array<ChannelsOfCopies, 2> pipeline_channels{{
    {{Slot::send_forward, Slot::receive_forward, Stream::pp_send_forward, Stream::pp_receive_forward},
     {Slot::send_forward_descending, Slot::receive_forward_descending, Stream::pp_send_forward_descending,
      Stream::pp_receive_forward_descending}},
    {{Slot::send_backward, Slot::receive_backward, Stream::pp_send_backward, Stream::pp_receive_backward},
     {Slot::send_backward_descending, Slot::receive_backward_descending, Stream::pp_send_backward_descending,
      Stream::pp_receive_backward_descending}},
}};

}  // namespace tandem::scenarios
