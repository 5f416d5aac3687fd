#include "scenarios/lowering/pipeline.h"

#include "scenarios/lowering/hyper_connection.h"
#include "scenarios/mesh/pipeline_channels.h"

namespace tandem::scenarios {
namespace {

const PipelineChannel& channel(PipelineLink::Direction direction, bool descending) {
  const ChannelsOfCopies& channels = pipeline_channels[static_cast<std::size_t>(direction)];
  return descending ? channels.descending : channels.ascending;
}

}  // namespace

BufferId PipelineLink::receive(Direction direction, std::int64_t states) {
  const bool forward = direction == Direction::forward;
  if (placement_.turns_after(forward ? part() - 1 : part())) return handed_.extract({direction, context_.micro_batch}).mapped();
  const LocalSizes& n = context_.sizes;
  const std::int64_t width = states > 1 ? n.hidden : residual_width(context_);  // several states are ends of streams
  const BufferId data = context_.activation(Shape(states * n.sequence_shard, n.batch, width));
  const BufferId arriving = scatters() ? context_.gathered(Shape(states * n.sequence_shard / n.tp, n.batch, width)) : data;
  const PipelineChannel& through = channel(direction, placement_.descends(context_.chunk));
  TaskId task = context_.collective(OpKind::receive, through.receive, through.receive_stream,
                                    forward ? "receive forward" : "receive backward", no_id, arriving);
  receives(task);
  if (arriving != data)
    task = context_.collective(OpKind::all_gather, Slot::tp, Stream::tp, forward ? "gather forward" : "gather backward", arriving,
                               data);
  context_.hold_compute_until(task);
  return data;
}

void PipelineLink::send(Direction direction, BufferId data) {
  const bool forward = direction == Direction::forward;
  if (placement_.turns_after(forward ? part() : part() - 1)) {
    handed_[{direction, context_.micro_batch}] = data;
    return;
  }
  const PipelineChannel& through = channel(direction, placement_.descends(context_.chunk));
  const TaskId task =
      context_.collective(OpKind::send, through.send, through.send_stream, forward ? "send forward" : "send backward",
                          scatters() ? context_.shard_of(data, context_.sizes.tp_rank) : data, no_id);
  // Of several states, other kernels wrote other ranks' parts; Megatron-Core's `torch.cat` writes all at once.
  if (context_.shape_of(data)[0] > context_.sizes.sequence_shard) context_.start_after_compute(task);
  sends(task);
}

/// Nothing precedes it where it is posted from the start.
void PipelineLink::receives(TaskId task) { context_.builder.depend(posted_after(), task); }

void PipelineLink::sends(TaskId task) {
  if (!context_.scenario.training.overlap_pp) sent_.push_back(task);
}

bool PipelineLink::scatters() const {
  const LocalSizes& n = context_.sizes;
  return context_.scenario.parallelism.scatter_gather && n.tp > 1 && !n.sequence_parallel && n.sequence_shard % n.tp == 0;
}

TaskId PipelineLink::posted_after() const {
  if (context_.scenario.training.overlap_pp) return action_before_end_;
  // Stages that wait for their sends in both directions at once would wait for each other's receives.
  return placement_.descends() ? no_id : exchange_;
}

void PipelineLink::end_action(bool exchanges) {
  action_before_end_ = last_action_end_;
  last_action_end_ = context_.builder.last_on(context_.rank, Stream::compute);
  if (!exchanges) return;
  exchange_ = last_action_end_;
  for (const TaskId send : sent_) {
    context_.builder.depend(exchange_, send);
    context_.hold_compute_until(send);
  }
  sent_.clear();
}

}  // namespace tandem::scenarios
