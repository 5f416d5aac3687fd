#pragma once

#include <string>
#include <vector>

#include "studies/runner/step_job.h"
#include "studies/sweep/study.h"

namespace tandem::studies {

/// Makes the job of one point of a study, presets filled in, with what the point's row says of it.
StepJob job_of_point(const Study& study, std::size_t index);

/// What identifies a point without its scenario, which is long.
struct PointId {
  std::size_t index = 0;  ///< in the study's order, from 0
  std::string hash;       ///< see `hash_of_scenario`
  std::string refusal;    ///< why there is no such scenario: the sentence, with its place; empty where there is one
};

/// Returns the fields that vary in the study, with their values at a point.
std::vector<NamedCell> values_of_point(const Study& study, std::size_t index);

/// Validates every point of the study. Throws InputError where two are the same scenario.
std::vector<PointId> validated_points(const Study& study);

/// Returns one sentence for each different refusal, with the points it concerns. Empty where all points can be simulated.
std::vector<std::string> refusals(const Study& study, const std::vector<PointId>& points);

}  // namespace tandem::studies
