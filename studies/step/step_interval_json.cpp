#include <nlohmann/json.hpp>

#include "studies/step/step_interval.h"

namespace tandem::studies {

nlohmann::ordered_json to_json_object(const Interval& interval) {
  nlohmann::ordered_json shares = nlohmann::ordered_json::object();
  for (std::size_t part = 0; part < error_part_count; ++part)
    shares[name_of(static_cast<ErrorPart>(part))] = interval.share_of(static_cast<ErrorPart>(part));
  nlohmann::ordered_json narrower = nlohmann::ordered_json::object();
  for (const Remedy& remedy : remedies) narrower[remedy.key] = interval.give_or_take_without(remedy.parts);
  return {{"low", interval.low},
          {"high", interval.high},
          {"shares", shares},
          {"known_from", {{"class", interval.known_class}, {"runs", interval.runs}, {"sources", interval.sources}}},
          {"seen_gpu", interval.seen_gpu},
          {"seen_framework", interval.seen_framework},
          {"give_or_take_if_measured", narrower}};
}

}  // namespace tandem::studies
