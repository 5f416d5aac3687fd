#include "scenarios/lowering/sharded_weights.h"

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "scenarios/lowering/data_groups.h"

namespace tandem::scenarios {
namespace {

/// Calls `visit(index, bucket)` for the buckets of a unit.
template <typename Function>
void for_each_bucket(const ChunkParameters& parameters, std::size_t unit, Function visit) {
  for (std::size_t b = 0; b < parameters.buckets().size(); ++b) {
    if (parameters.buckets()[b].unit == unit) visit(b, parameters.buckets()[b]);
  }
}

}  // namespace

ShardedWeights::ShardedWeights(Context& context, std::vector<std::vector<Section>> sections, std::vector<Visit> plan)
    : context_(context),
      sections_(std::move(sections)),
      plan_(std::move(plan)),
      depth_(context.scenario.training.overlap_dp ? static_cast<std::size_t>(context.scenario.parallelism.prefetch) : 0) {
  for (const ChunkParameters& chunk : context.chunks) units_.emplace_back(chunk.units());
}

void ShardedWeights::enter(const Visit& visit) {
  if (current_ >= plan_.size() || plan_[current_] != visit) throw std::logic_error("a visit that the plan does not have next");
  const TaskId before = context_.builder.last_on(context_.rank, Stream::compute);
  const std::size_t end = std::min(current_ + depth_ + 1, plan_.size());
  for (std::size_t v = current_; v < end; ++v) {
    for (const std::size_t unit : section_of(plan_[v]).units) {
      if (!units_[plan_[v].chunk][unit].gathered) gather(plan_[v], unit, before);
    }
  }
  if (!visit.backward) return;
  for (const std::size_t unit : section_of(visit).units) clear_gradients(visit.chunk, unit);
}

void ShardedWeights::leave() {
  const Visit& visit = plan_[current_];
  for (const std::size_t unit : section_of(visit).units) {
    if (!visit.again) units_[visit.chunk][unit].in_flight += visit.backward ? -1 : 1;
    if (!keeps(visit.chunk, unit)) drop(visit.chunk, unit);
  }
  ++current_;
}

std::size_t ShardedWeights::next_use(std::size_t chunk, std::size_t unit) const {
  std::size_t v = current_ + 1;
  const auto uses = [&](const Visit& visit) {
    return visit.chunk == chunk && std::ranges::find(section_of(visit).units, unit) != section_of(visit).units.end();
  };
  while (v < plan_.size() && !uses(plan_[v])) ++v;
  return v;
}

bool ShardedWeights::keeps(std::size_t chunk, std::size_t unit) const {
  const ParallelismSpec& p = context_.scenario.parallelism;
  const std::size_t next = next_use(chunk, unit);
  if (next == plan_.size()) return false;
  if (!p.gather_per_micro_batch || next <= current_ + 1 + depth_) return true;
  return !p.reshard_after_forward && units_[chunk][unit].in_flight > 0;
}

void ShardedWeights::gather(const Visit& visit, std::size_t unit, TaskId before) {
  units_[visit.chunk][unit].gathered = true;
  const auto labels = std::tuple(context_.phase, context_.micro_batch, context_.layer, context_.chunk);
  context_.phase = visit.backward || visit.again ? Phase::backward_input : Phase::forward;
  context_.micro_batch = visit.micro_batch;
  context_.layer = section_of(visit).layer;
  context_.chunk = static_cast<std::int16_t>(visit.chunk);
  ChunkParameters& parameters = context_.chunks[visit.chunk];
  for_each_bucket(parameters, unit, [&](std::size_t index, const Bucket& bucket) {
    if (bucket.weights != no_id) return;  // nobody to share it with
    const BufferId whole = context_.gathered(bucket.whole);
    const TaskId task = gather_slices(context_, bucket.kind, bucket.weight_slice, whole);
    context_.builder.depend(before, task);
    parameters.bind(context_.builder, index, whole);
  });
  std::tie(context_.phase, context_.micro_batch, context_.layer, context_.chunk) = labels;
}

void ShardedWeights::drop(std::size_t chunk, std::size_t unit) {
  units_[chunk][unit].gathered = false;
  ChunkParameters& parameters = context_.chunks[chunk];
  for_each_bucket(parameters, unit, [&](std::size_t index, const Bucket& bucket) {
    if (bucket.weights == no_id) parameters.bind(context_.builder, index, no_id);
  });
}

void ShardedWeights::clear_gradients(std::size_t chunk, std::size_t unit) {
  if (units_[chunk][unit].gradient_cleared) return;
  units_[chunk][unit].gradient_cleared = true;
  const Phase before = context_.phase;
  context_.phase = Phase::backward_weight;
  for_each_bucket(context_.chunks[chunk], unit, [&](std::size_t, const Bucket& bucket) {
    if (!bucket.frozen) context_.kernel(OpKind::fill, ScaleAttributes{0.0F}, "clear gradients", {}, {bucket.gradients});
  });
  context_.phase = before;
}

}  // namespace tandem::scenarios
