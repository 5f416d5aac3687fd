#include "scenarios/lowering/offload.h"

namespace tandem::scenarios {
namespace {

class HostUpdate {
 public:
  explicit HostUpdate(Context& context) : context_(context) {
    for (const std::int16_t chunk : context.chunk_order) {
      for (const Bucket& bucket : context.chunks[static_cast<std::size_t>(chunk)].buckets())
        if (bucket.on_host.elements > 0) parts_.push_back({chunk, &bucket});
    }
  }

  void lower(BufferId norm) {
    if (parts_.empty()) return;
    const bool overlaps = context_.scenario.training.offload.overlap_optimizer;
    const TaskId norm_known = context_.builder.last_on(context_.rank, Stream::compute);
    const BufferId norm_there = context_.builder.buffer(context_.rank, BufferKind::host, DType::f32, Shape(1));
    // The norm is the last that is known: what overlaps is ahead of it in the queue.
    TaskId first_out = no_id;
    for (const Part& part : parts_) {
      const TaskId out = copy_gradient(part);
      if (first_out == no_id) first_out = out;
    }
    if (!overlaps && norm_known != no_id) context_.builder.depend(norm_known, first_out);
    copy(Slot::to_host, Stream::to_host, "gradient norm to host", norm, norm_there);
    TaskId last_update = no_id;
    for (const Part& part : parts_) last_update = update(part, norm_there);
    TaskId first_in = no_id;
    for (const Part& part : parts_) {
      const TaskId in = copy_weights(part);
      if (first_in == no_id) first_in = in;
    }
    if (!overlaps) context_.builder.depend(last_update, first_in);
  }

 private:
  struct Part {
    std::int16_t chunk;
    const Bucket* bucket;
  };
  Context& context_;
  std::vector<Part> parts_;

  TaskLabels labels(std::string_view name, Stream stream, std::int16_t chunk = -1) const {
    return {.name = name, .phase = Phase::optimizer, .stream = stream, .chunk = chunk};
  }

  TaskId copy(Slot slot, Stream stream, std::string_view name, BufferId in, BufferId out, std::int16_t chunk = -1) {
    return context_.builder.collective(OpKind::copy, context_.communicator(slot), labels(name, stream, chunk), in, out);
  }

  TaskId copy_gradient(const Part& part) {
    const BufferId gradient = context_.builder.view(part.bucket->gradient_slice, 0, Shape(part.bucket->on_host.elements));
    const TaskId out =
        copy(Slot::to_host, Stream::to_host, "gradients to host", gradient, part.bucket->on_host.gradient, part.chunk);
    context_.wait_for_gradients(out);
    return out;
  }

  TaskId update(const Part& part, BufferId norm) {
    const Bucket::OnHost& host = part.bucket->on_host;
    const BufferId reads[] = {host.gradient, norm}, writes[] = {host.weight};
    const BufferId updates[] = {host.master, host.momentum, host.variance};
    return context_.builder.kernel(OpKind::adam, AdamAttributes{.step = 1 + context_.steps_before},
                                   labels("adam on the host", Stream::host, part.chunk), reads, writes, updates);
  }

  TaskId copy_weights(const Part& part) {
    const BufferId weights = context_.builder.view(part.bucket->weight_slice, 0, Shape(part.bucket->on_host.elements));
    return copy(Slot::from_host, Stream::from_host, "weights from host", part.bucket->on_host.weight, weights, part.chunk);
  }
};

}  // namespace

void update_on_host(Context& context, BufferId norm) { HostUpdate(context).lower(norm); }

}  // namespace tandem::scenarios
