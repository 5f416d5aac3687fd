#include "scenarios/lowering/local_steps.h"

#include <algorithm>
#include <iterator>

namespace tandem::scenarios {

void average_weights(Context& context) {
  if (context.communicator(Slot::replicas) == no_id) return;
  context.phase = Phase::optimizer;
  const TaskId last_update = context.builder.last_on(context.rank, Stream::compute);
  std::vector<Bucket> buckets;
  for (const std::int16_t chunk : context.chunk_order) {
    std::ranges::copy_if(context.chunks[static_cast<std::size_t>(chunk)].buckets(), std::back_inserter(buckets),
                         [](const Bucket& bucket) { return !bucket.frozen; });
  }
  for (const Bucket& bucket : buckets) {
    const TaskId mean = context.collective(OpKind::all_reduce, Slot::replicas, Stream::dp, "average weights", bucket.master,
                                           bucket.master, Reduction::mean);
    if (!context.scenario.training.overlap_dp) context.builder.depend(last_update, mean);
  }
  for (const Bucket& bucket : buckets) {
    context.kernel(OpKind::scale, ScaleAttributes{1.0F}, "averaged weights", {bucket.master}, {bucket.weights});
  }
}

}  // namespace tandem::scenarios
