#pragma once

#include <string>
#include <vector>

#include "studies/runner/step_job.h"
#include "studies/sweep/study.h"

namespace tandem::studies {

/// Makes one point of a study ready to be simulated: presets filled in, and what its row says of it.
StepJob job_of_point(const Study& study, std::size_t index);

/// What identifies a point without its scenario, which is long.
struct PointId {
  std::size_t index = 0;  ///< in the study's order, from 0
  std::string hash;       ///< see `hash_of_scenario`
  std::string refusal;    ///< why there is no such scenario: the sentence, with its place; empty where there is one
};

/// The fields that vary in the study, with their values at a point.
std::vector<NamedCell> values_of_point(const Study& study, std::size_t index);

/// All points, each validated. Throws InputError where two are the same scenario.
std::vector<PointId> validated_points(const Study& study);

/// One sentence for each different refusal, with the points it concerns. Empty where all points can be simulated.
std::vector<std::string> refusals(const Study& study, const std::vector<PointId>& points);

}  // namespace tandem::studies
