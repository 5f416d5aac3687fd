#include "scenarios/lowering/offload_activations.h"

#include <utility>

#include "scenarios/lowering/context.h"

namespace tandem::scenarios {
namespace {

TaskLabels labels_of(const Context& context, const LayerPass& pass, std::string_view name, Stream stream) {
  return {.name = name,
          .phase = context.phase,
          .stream = stream,
          .micro_batch = pass.micro_batch,
          .layer = pass.layer,
          .chunk = pass.chunk};
}

}  // namespace

ActivationReaders ActivationOffload::readers() const {
  ActivationReaders readers;
  for (std::uint32_t number = 0; number < seen_.size(); ++number) {
    const Seen& seen = seen_[number];
    if (seen.by_forward && seen.is_read && !seen.stays && seen.reader.layer >= 0) readers[seen.reader].push_back(number);
  }
  return readers;
}

void ActivationOffload::made(BufferId activation) {
  if (!is_active()) return;
  number_.emplace(activation, static_cast<std::uint32_t>(made_.size()));
  made_.push_back(activation);
  seen_.push_back({.by_forward = !in_backward_});
}

BufferId ActivationOffload::read(Context& context, BufferId id) {
  const Buffer& buffer = context.builder.dag().buffers[id];
  if (watches_) {
    const auto number = number_.find(buffer.base);
    if (number == number_.end() || !in_backward_) return id;
    Seen& seen = seen_[number->second];
    if (seen.is_read && seen.reader != backward_) seen.stays = true;
    seen.is_read = true;
    seen.reader = backward_;
    return id;
  }
  if (!in_backward_) return id;
  const auto fetched = fetched_.find(backward_);
  if (fetched == fetched_.end()) return id;
  const auto copy = fetched->second.find(buffer.base);
  if (copy == fetched->second.end()) return id;
  return buffer.base == id ? copy->second : context.builder.view(copy->second, buffer.offset, buffer.shape);
}

void ActivationOffload::write(Context& context, BufferId id) {
  if (!watches_ || !in_backward_) return;
  const auto number = number_.find(context.builder.dag().buffers[id].base);
  if (number != number_.end()) seen_[number->second].stays = true;
}

void ActivationOffload::begin_forward(Context& context, const LayerPass& pass) {
  if (!readers_.contains(pass)) return;
  constexpr std::size_t layers_on_their_way = 2;
  if (last_out_.size() < layers_on_their_way) return;
  context.hold_compute_until(last_out_.front());
  last_out_.pop_front();
}

void ActivationOffload::end_forward(Context& context, const LayerPass& pass) {
  const auto found = readers_.find(pass);
  if (found == readers_.end()) return;
  for (const std::uint32_t number : found->second) {
    const BufferId made = made_.at(number);
    const BufferId there = host_buffer(context, context.builder.dag().buffers[made]);
    at_host_[number] = there;
    const TaskId out = context.builder.collective(OpKind::copy, context.communicator(Slot::to_host),
                                                  labels_of(context, pass, "activations to host", Stream::to_host), made, there);
    if (number == found->second.back()) last_out_.push_back(out);
  }
}

void ActivationOffload::begin_backward(Context& context, const LayerPass& pass, const LayerPass& next) {
  in_backward_ = true;
  backward_ = pass;
  fetch(context, pass);
  fetch(context, next);
}

void ActivationOffload::end_backward(const LayerPass& pass) {
  in_backward_ = false;
  fetched_.erase(pass);
}

/// Nothing comes back before what was lowered so far has computed: it would take its place for nothing.
void ActivationOffload::fetch(Context& context, const LayerPass& pass) {
  const auto found = readers_.find(pass);
  if (found == readers_.end() || fetched_.contains(pass)) return;
  std::unordered_map<BufferId, BufferId>& copies = fetched_[pass];
  TaskId before = context.builder.last_on(context.rank, Stream::compute);
  for (const std::uint32_t number : found->second) {
    const BufferId made = made_.at(number), there = at_host_.at(number);
    const Buffer like = context.builder.dag().buffers[made];
    const BufferId back = context.builder.buffer(context.rank, BufferKind::activation, like.dtype, like.shape);
    const TaskId in =
        context.builder.collective(OpKind::copy, context.communicator(Slot::from_host),
                                   labels_of(context, pass, "activations from host", Stream::from_host), there, back);
    if (before != no_id) context.builder.depend(std::exchange(before, no_id), in);
    copies.emplace(made, back);
    at_host_.erase(number);
    free_.emplace(std::tuple(like.dtype, like.shape.elements()), there);
  }
}

BufferId ActivationOffload::host_buffer(Context& context, const Buffer& like) {
  const auto free = free_.find({like.dtype, like.shape.elements()});
  if (free == free_.end())
    return context.builder.buffer(context.rank, BufferKind::host, like.dtype, Shape(like.shape.elements()));
  const BufferId buffer = free->second;
  free_.erase(free);
  return buffer;
}

}  // namespace tandem::scenarios
