#include <nlohmann/json.hpp>

#include "studies/crosscheck/comparison_json.h"
#include "studies/step/step_interval.h"
#include "studies/step/step_result.h"

namespace tandem::studies {
namespace {

using Json = nlohmann::ordered_json;

Json exposed_json(const TimeParts& parts) {
  Json exposed = Json::object();
  for (const Axis axis : {Axis::tp, Axis::cp, Axis::ep, Axis::pp, Axis::dp}) exposed[name_of(axis)] = parts.exposed_on(axis);
  return exposed;
}

Json stage_times_json(const std::vector<StageTime>& times) {
  Json stages = Json::array();
  for (std::size_t s = 0; s < times.size(); ++s) {
    const TimeParts& parts = times[s].parts;
    stages.push_back({{"stage", s},
                      {"ranks", times[s].ranks},
                      {"forward", parts.in_phase(Phase::forward)},
                      {"backward_input", parts.in_phase(Phase::backward_input)},
                      {"backward_weight", parts.in_phase(Phase::backward_weight)},
                      {"recompute", parts.in_phase(Phase::recompute)},
                      {"exposed", exposed_json(parts)},
                      {"bubble", parts.bubble},
                      {"optimizer", parts.optimizer()}});
  }
  return stages;
}

Json kinds_json(const std::vector<KindTime>& times) {
  Json kinds = Json::array();
  for (const KindTime& kind : times)
    kinds.push_back({{"name", kind.name}, {"phase", name_of(kind.phase)}, {"count", kind.count}, {"time_s", kind.time}});
  return kinds;
}

}  // namespace

Json to_json_object(const StepResult& r) {
  Json stages = Json::array();
  for (std::size_t s = 0; s < r.stages.size(); ++s) {
    const MemoryUse& m = r.stages[s];
    stages.push_back({{"stage", s},
                      {"parameters", m.parameters},
                      {"gradients", m.gradients},
                      {"optimizer", m.optimizer},
                      {"activations", m.activations},
                      {"buffers", m.buffers},
                      {"peak_bytes", m.peak()},
                      {"peak_at_s", m.peak_at}});
  }
  Json json = {{"scenario", r.scenario},
               {"gpus", r.gpus},
               {"gpu", r.gpu},
               {"tokens", r.tokens},
               {"step_time_s", r.step_time},
               {"tokens_per_s_per_gpu", r.tokens_per_second_per_gpu},
               {"model_tflops_per_gpu", r.model_flops_per_gpu / 1e12},
               {"mfu", r.mfu},
               {"hfu", r.hfu},
               {"flops_convention", "causal"},
               {"bubble_fraction", r.parts.bubble / r.step_time},
               {"time_s",
                {{"compute", r.parts.compute()},
                 {"exposed", exposed_json(r.parts)},
                 {"bubble", r.parts.bubble},
                 {"optimizer", r.parts.optimizer()}}},
               {"stages_s", stage_times_json(r.stage_times)},
               {"kinds", kinds_json(r.kinds)},
               {"memory", {{"peak_bytes", r.peak_memory()}, {"gpu_bytes", r.gpu_memory}, {"fits", r.fits()}, {"stages", stages}}},
               {"bounds_s", {{"lower", r.lower_bound}, {"upper", r.upper_bound}}},
               {"warnings", r.warnings},
               {"run",
                {{"ranks", r.gpus},
                 {"rank_classes", r.rank_classes},
                 {"link_classes", r.link_classes},
                 {"tasks", r.tasks},
                 {"wall_s", r.run.wall},
                 {"peak_rss_bytes", r.run.peak_rss},
                 {"backend", r.run.backend},
                 {"folded", r.run.folded}}}};
  if (!r.run.collectives.empty()) json["run"]["collectives"] = r.run.collectives;
  if (r.sync_every > 1) json["sync_every"] = r.sync_every;
  if (r.is_simulated()) {
    const Interval interval = step_interval(r);
    json["interval_s"] = {{"low", interval.low}, {"high", interval.high}};
  }
  if (r.step_kinds) {
    json["step_time_local_s"] = r.step_kinds->local;
    json["step_time_sync_s"] = r.step_kinds->sync;
  }
  if (r.jitter) {
    json["jitter"] = {{"draws", r.jitter->draws},
                      {"p50_s", r.jitter->p50},
                      {"p90_s", r.jitter->p90},
                      {"p99_s", r.jitter->p99},
                      {"mean_s", r.jitter->mean}};
    json["run"]["jitter_wall_s"] = r.jitter->wall;
  }
  if (r.merged_fold) {
    json["run"]["fold"] = {{"tolerance", r.merged_fold->tolerance},
                           {"step_time_lower_s", r.merged_fold->lower},
                           {"step_time_upper_s", r.merged_fold->upper}};
  }
  if (r.comparison) json["crosscheck"] = to_json_object(*r.comparison);
  return json;
}

std::string to_json(const StepResult& result) { return to_json_object(result).dump(1) + "\n"; }

}  // namespace tandem::studies
