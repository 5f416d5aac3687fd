#include <nlohmann/json.hpp>

#include "studies/validate/explained_run.h"
#include "studies/validate/validation.h"

namespace tandem::studies {
namespace {

using Json = nlohmann::ordered_json;

Json times_json(const ExplainedRun& explained) {
  Json times = Json::array();
  for (const ExplainedTime& time : explained.times)
    times.push_back({{"name", time.name},
                     {"part", time.part ? Json(name_of(*time.part)) : Json(nullptr)},
                     {"time_s", time.time},
                     {"share", time.time / explained.row.prediction->typical.step.step_time},
                     {"off_by", time.off_by}});
  return times;
}

Json nearest_json(const ExplainedRun& explained) {
  if (!explained.nearest) return nullptr;
  const NearestRun& nearest = *explained.nearest;
  Json differs = Json::array();
  for (const RunDifference& difference : nearest.differences)
    differs.push_back({{"what", difference.what}, {"here", difference.here}, {"there", difference.there}});
  Json json = {{"row", to_json_object(nearest.row)}, {"distance", distance_of(nearest.differences)}, {"differs_in", differs}};
  const auto put = [&](const char* key, const std::optional<double>& value) { json[key] = value ? Json(*value) : Json(nullptr); };
  put("predicted_ratio", explained.predicted_ratio());
  put("measured_ratio", explained.measured_ratio());
  put("step_time_like_it_s", explained.step_time_like_nearest());
  return json;
}

}  // namespace

std::string to_json(const ExplainedRun& explained) {
  const Json json = {
      {"row", to_json_object(explained.row)},
      {"interval_s", explained.row.prediction ? to_json_object(explained.row.prediction->interval) : Json(nullptr)},
      {"times", times_json(explained)},
      {"nearest", nearest_json(explained)}};
  return json.dump(1) + "\n";
}

}  // namespace tandem::studies
