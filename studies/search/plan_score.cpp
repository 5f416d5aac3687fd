#include "studies/search/plan_score.h"

#include <algorithm>

namespace tandem::studies {

Seconds exposed_in_all(const StepResult& step) {
  Seconds sum = 0;
  for (const Axis axis : communication_axes) sum += step.parts.exposed_on(axis);
  return sum;
}

double score(const SearchSpec& spec, std::int64_t gpus, std::int64_t tokens, Seconds step_time) {
  const double gpu_seconds_per_token = step_time * static_cast<double>(gpus) / static_cast<double>(tokens);
  switch (spec.objective) {
    case SearchObjective::step_time:
      return step_time;
    case SearchObjective::tokens_per_s_per_gpu:
      return gpu_seconds_per_token;
    case SearchObjective::cost_per_million_tokens:
      return spec.price_per_gpu_hour * gpu_seconds_per_token / 3600 * 1e6;
  }
  return step_time;
}

Bytes memory_limit(const SearchSpec& spec) {
  const ClusterSpec& cluster = spec.scenario.cluster;
  Bytes least = cluster.gpu.memory;
  for (const OtherGpus& others : cluster.other_gpus) least = std::min(least, others.gpu.memory);
  return static_cast<Bytes>(spec.constraints.memory_share * static_cast<double>(least));
}

Shortfall shortfall(const SearchSpec& spec, const StepResult& step) {
  const SearchConstraints& constraints = spec.constraints;
  Shortfall lacks;
  lacks.memory = std::max<Bytes>(0, step.peak_memory() - memory_limit(spec));
  if (constraints.bubble) lacks.bubble = std::max(0.0, step.parts.bubble / step.step_time - *constraints.bubble);
  if (constraints.exposed) lacks.exposed = std::max(0.0, exposed_in_all(step) / step.step_time - *constraints.exposed);
  return lacks;
}

}  // namespace tandem::studies
