#include <nlohmann/json.hpp>

#include "studies/validate/validation.h"

namespace tandem::studies {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

Json to_json_object(const ValidatedRow& row) {
  Json json = {{"id", row.id}, {"measured_step_time_s", or_null(row.measured)}};
  const auto put = [&](const char* key, auto of) { json[key] = row.prediction ? Json(of(*row.prediction)) : Json(nullptr); };
  put("predicted_step_time_s", [](const Prediction& p) { return p.step_time; });
  put("low_s", [](const Prediction& p) { return p.interval.low; });
  put("high_s", [](const Prediction& p) { return p.interval.high; });
  put("expected_error", [](const Prediction& p) { return total(p.expected); });
  json["error"] = or_null(row.error());
  json["note"] = note_of(row);
  json["source"] = row.source;
  json["framework"] = row.framework;
  json["gpu"] = row.gpu;
  json["moe"] = row.moe;
  json["core"] = row.core;
  if (!row.prediction) return json;
  const Prediction& prediction = *row.prediction;
  json["measured_tokens_per_s_per_gpu"] = row.measured ? Json(row.tokens_per_gpu / *row.measured) : Json(nullptr);
  json["predicted_tokens_per_s_per_gpu"] = row.tokens_per_gpu / prediction.step_time;
  json["fits"] = prediction.fits;
  json["peak_memory_bytes"] = prediction.typical.step.peak_memory();
  json["assumed"] = Json::object();
  for (const auto& [column, value] : prediction.typical.assumed) json["assumed"][column] = value;
  json["time_s"] = to_json_object(prediction.typical.step.parts);
  json["kinds"] = to_json_list(prediction.typical.step.kinds);
  json["scenario"] = prediction.typical.yaml;
  return json;
}

namespace {

Json memory_json(const MemoryScore& memory) {
  Json rows = Json::array();
  for (const MemoryRow& row : memory.rows)
    rows.push_back({{"id", row.id},
                    {"figure", name_of(row.figure)},
                    {"measured_bytes", row.measured},
                    {"predicted_bytes", row.predicted},
                    {"error", row.error()}});
  Json figures = Json::array();
  for (std::size_t i = 0; i < memory_figure_count; ++i) {
    const Score& score = memory.by_figure[i];
    if (score.rows == 0) continue;
    figures.push_back({{"figure", name_of(static_cast<MemoryFigure>(i))},
                       {"rows", score.rows},
                       {"median_abs_error", score.median},
                       {"p90_abs_error", score.p90},
                       {"bias", score.bias}});
  }
  const FitsTable& fits = memory.fits;
  return {{"rows", rows},
          {"median_abs_error", memory.score.median},
          {"p90_abs_error", memory.score.p90},
          {"bias", memory.score.bias},
          {"figures", figures},
          {"fits",
           {{"ran_and_fits", fits.ran_fits},
            {"ran_but_exceeds", fits.ran_exceeds},
            {"oom_but_fits", fits.oom_fits},
            {"oom_and_exceeds", fits.oom_exceeds}}}};
}

Json ratios_json(const std::vector<Ratio>& ratios) {
  Json axes = Json::array(), pairs = Json::array();
  for (const RatioScore& axis : score_ratios(ratios))
    axes.push_back({{"axis", axis.axis},
                    {"pairs", axis.score.rows},
                    {"sources", axis.score.sources},
                    {"median_abs_error", axis.score.median},
                    {"p90_abs_error", axis.score.p90}});
  for (const Ratio& ratio : ratios)
    pairs.push_back({{"axis", ratio.axis},
                     {"from", ratio.from},
                     {"to", ratio.to},
                     {"measured", ratio.measured},
                     {"predicted", ratio.predicted},
                     {"error", ratio.error()}});
  return {{"axes", axes}, {"pairs", pairs}};
}

Json stratum_json(const Stratum& stratum) {
  const Score& s = stratum.score;
  return {{"set", stratum.set},       {"by", stratum.by},       {"name", stratum.name},
          {"rows", s.rows},           {"sources", s.sources},   {"median_abs_error", s.median},
          {"mean_abs_error", s.mean}, {"p90_abs_error", s.p90}, {"bias", s.bias},
          {"coverage", s.coverage}};
}

}  // namespace

Json to_json_object(const Validation& validation) {
  Json rows = Json::array(), strata = Json::array(), unsimulated = Json::array();
  for (const ValidatedRow& row : validation.rows) {
    rows.push_back(to_json_object(row));
    if (!row.prediction) unsimulated.push_back({{"id", row.id}, {"reason", row.reason}});
  }
  for (const Stratum& stratum : validation.strata) strata.push_back(stratum_json(stratum));
  Json cross_validation = Json::array();
  for (const CrossValidation& part : validation.cross_validation)
    cross_validation.push_back(
        {{"name", part.name}, {"fitted_median_abs_error", part.fitted}, {"left_out_median_abs_error", part.left_out}});
  return {{"rows", rows},
          {"strata", strata},
          {"memory", memory_json(validation.memory)},
          {"ratios", ratios_json(validation.ratios)},
          {"cross_validation", cross_validation},
          {"unsimulated", unsimulated}};
}

std::string to_json(const Validation& validation) { return to_json_object(validation).dump(1) + "\n"; }

}  // namespace tandem::studies
