#pragma once

#include <string>
#include <vector>

#include "studies/sweep/study.h"

namespace tandem::studies {

/// One point of a study, ready to be simulated.
struct Point {
  std::size_t index = 0;  ///< in the study's order, from 0
  Assignments assignments;
  std::string scenario;  ///< complete: presets filled in, one line of YAML
  std::string hash;      ///< see `hash_of_scenario`
  std::string refusal;   ///< why there is no such scenario: the sentence, with its place; empty where there is one
};

/// What a result is known by: 16 hexadecimal digits (FNV-1a, 64 bits) of Tandem's version and the complete scenario. It changes
/// with every value that the simulation sees, in the scenario's file, in a preset or profile, or in the study, and with nothing
/// else: not with comments, the order of fields, or how the points are listed.
std::string hash_of_scenario(const std::string& complete_scenario);

Point make_point(const Study& study, std::size_t index);

/// What identifies a point without its scenario, which is long.
struct PointId {
  std::size_t index = 0;
  std::string hash;
  std::string refusal;
};

/// All points, each validated. Throws InputError where two are the same scenario.
std::vector<PointId> validated_points(const Study& study);

/// One sentence for each different refusal, with the points it concerns. Empty where all points can be simulated.
std::vector<std::string> refusals(const Study& study, const std::vector<PointId>& points);

}  // namespace tandem::studies
