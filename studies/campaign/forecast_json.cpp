#include <nlohmann/json.hpp>

#include "runtime/base/si.h"
#include "studies/campaign/forecast.h"

namespace tandem::studies {
namespace {

using Json = nlohmann::ordered_json;

Json spread_json(const Spread& spread, double factor = 1) {
  return {{"mean", spread.mean * factor}, {"p5", spread.p5 * factor}, {"p50", spread.p50 * factor}, {"p95", spread.p95 * factor}};
}

Json times_json(const CampaignTimes& times) {
  return {{"training", times.training},   {"slow_nodes", times.slow}, {"checkpoint", times.checkpoint}, {"lost_work", times.lost},
          {"detection", times.detection}, {"restart", times.restart}, {"waiting", times.waiting}};
}

Json interruptions_json(const CampaignForecast& f) {
  Json components = Json::array();
  for (const Component component : {Component::gpu, Component::node, Component::link, Component::software}) {
    const double rate = f.model.failures[component];
    components.push_back({{"component", name_of(component)},
                          {"mean", f.failures[component]},
                          {"mtbf_s", rate > 0 ? Json(1 / rate) : Json(nullptr)}});
  }
  return {{"unexpected", spread_json(f.interruptions)},
          {"mtbf_s", f.mtbf()},
          {"components", components},
          {"planned", f.planned_stops},
          {"slow_nodes_found", f.slow_found}};
}

Json intervals_json(const CampaignForecast& f) {
  Json rows = Json::array();
  for (const IntervalForecast& row : f.intervals)
    rows.push_back({{"name", row.name},
                    {"interval_s", row.interval},
                    {"steps", row.steps},
                    {"goodput", spread_json(row.goodput)},
                    {"goodput_closed_form", row.expected_goodput}});
  return rows;
}

}  // namespace

std::string to_json(const CampaignForecast& f) {
  const double gpu_hours_per_day = f.gpu_hours(1);
  const Json slow = f.slow_step_time ? Json(*f.slow_step_time) : Json(nullptr);
  const Json json = {{"kind", "campaign"},
                     {"scenario", f.scenario},
                     {"preset", f.preset},
                     {"gpu", f.gpu},
                     {"gpus", f.gpus},
                     {"nodes", f.nodes},
                     {"spare_nodes", f.spare_nodes},
                     {"step",
                      {{"time_s", f.step_time},
                       {"low_s", f.step_interval.low},
                       {"high_s", f.step_interval.high},
                       {"with_slow_node_s", slow},
                       {"tokens", f.tokens_per_step}}},
                     {"time_s", spread_json(f.days, day)},
                     {"time_with_step_s", spread_json(f.days_with_step, day)},
                     {"tokens", spread_json(f.tokens)},
                     {"tokens_with_step", spread_json(f.tokens_with_step)},
                     {"gpu_hours", spread_json(f.days, gpu_hours_per_day)},
                     {"gpu_hours_with_step", spread_json(f.days_with_step, gpu_hours_per_day)},
                     {"goodput", spread_json(f.goodput)},
                     {"parts_s", times_json(f.times)},
                     {"interruptions", interruptions_json(f)},
                     {"checkpoint",
                      {{"mode", f.asynchronous ? "async" : "sync"},
                       {"bytes", f.checkpoint_bytes},
                       {"parameters", f.parameters},
                       {"stall_s", f.model.checkpoint.stall},
                       {"write_s", f.model.checkpoint.write},
                       {"load_s", f.model.checkpoint.load},
                       {"interval_s", f.model.interval},
                       {"intervals", intervals_json(f)}}},
                     {"replicas", f.replicas},
                     {"seed", f.seed}};
  return json.dump(1) + "\n";
}

}  // namespace tandem::studies
