#include "scenarios/lowering/pipeline.h"

namespace tandem {

BufferId PipelineLink::receive(Direction direction) {
  const bool forward = direction == Direction::forward;
  const LocalSizes& n = context_.sizes;
  const BufferId data = context_.activation(Shape(n.sequence_shard, n.batch, n.hidden));
  const TaskId task = context_.collective(OpKind::receive, forward ? Slot::receive_forward : Slot::receive_backward,
                                          forward ? Stream::pp_receive_forward : Stream::pp_receive_backward,
                                          forward ? "receive forward" : "receive backward", no_id, data);
  context_.builder.depend(action_before_end_, task);
  return data;
}

void PipelineLink::send(Direction direction, BufferId data) {
  const bool forward = direction == Direction::forward;
  const TaskId task = context_.collective(OpKind::send, forward ? Slot::send_forward : Slot::send_backward,
                                          forward ? Stream::pp_send_forward : Stream::pp_send_backward,
                                          forward ? "send forward" : "send backward", data, no_id);
  if (!context_.scenario.training.overlap_pp) context_.hold_compute_until(task);
}

void PipelineLink::end_action() {
  action_before_end_ = last_action_end_;
  last_action_end_ = context_.builder.last_on(context_.rank, Stream::compute);
}

}  // namespace tandem
