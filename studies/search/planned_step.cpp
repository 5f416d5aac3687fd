#include "studies/search/planned_step.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

namespace tandem::studies {

Seconds PlannedStep::exposed_in_all() const { return std::accumulate(exposed.begin(), exposed.end(), 0.0); }

PlannedStep planned_step(PointStatus status, const std::string& message, const std::string& json) {
  PlannedStep step;
  step.status = status;
  step.message = message;
  if (json.empty()) return step;
  const nlohmann::json result = nlohmann::json::parse(json);
  const nlohmann::json& times = result.at("time_s");
  step.step_time = result.at("step_time_s");
  step.compute = times.at("compute");
  step.bubble = times.at("bubble");
  step.optimizer = times.at("optimizer");
  for (std::size_t i = 0; i < communication_axes.size(); ++i)
    step.exposed[i] = times.at("exposed").at(std::string(name_of(communication_axes[i])));
  step.peak = result.at("memory").at("peak_bytes");
  step.gpu_memory = result.at("memory").at("gpu_bytes");
  step.gpus = result.at("gpus");
  step.tokens = result.at("tokens");
  return step;
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

Shortfall shortfall(const SearchSpec& spec, const PlannedStep& step) {
  const SearchConstraints& constraints = spec.constraints;
  Shortfall lacks;
  lacks.memory = std::max<Bytes>(0, step.peak - memory_limit(spec));
  if (constraints.bubble) lacks.bubble = std::max(0.0, step.bubble / step.step_time - *constraints.bubble);
  if (constraints.exposed) lacks.exposed = std::max(0.0, step.exposed_in_all() / step.step_time - *constraints.exposed);
  return lacks;
}

}  // namespace tandem::studies
