#include <nlohmann/json.hpp>

#include "studies/relief/relief.h"

namespace tandem::studies {
namespace {

nlohmann::ordered_json to_json_object(const Relief& relief) {
  return {{"levers", relief.levers},
          {"change", relief.change},
          {"step_time_s", relief.step_time},
          {"peak_bytes", relief.peak},
          {"fits", relief.fits}};
}

}  // namespace

nlohmann::ordered_json to_json_object(const ReliefResult& relief) {
  nlohmann::ordered_json alone = nlohmann::ordered_json::array(), plan = nullptr, least = nullptr;
  for (const Relief& one : relief.alone) alone.push_back(to_json_object(one));
  if (relief.plan) plan = to_json_object(*relief.plan);
  if (relief.least) least = to_json_object(*relief.least);
  return {{"alone", alone}, {"plan", plan}, {"least", least}, {"tried", relief.tried}, {"simulated", relief.simulated}};
}

}  // namespace tandem::studies
