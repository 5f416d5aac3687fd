#pragma once

#include <array>
#include <string>

#include "runtime/dag/dag.h"
#include "studies/runner/results_database.h"
#include "studies/search/plan.h"

namespace tandem::studies {

inline constexpr std::array communication_axes{Axis::tp, Axis::cp, Axis::ep, Axis::pp, Axis::dp};

/// How a plan's step went: what a search compares.
struct PlannedStep {
  PointStatus status = PointStatus::failed;
  std::string message;  ///< why there is nothing below
  Seconds step_time = 0;
  Seconds compute = 0, bubble = 0, optimizer = 0;
  std::array<Seconds, communication_axes.size()> exposed{};  ///< by axis
  Bytes peak = 0, gpu_memory = 0;
  std::int64_t gpus = 0, tokens = 0;

  bool is_simulated() const { return status == PointStatus::done || status == PointStatus::oom; }
  Seconds exposed_in_all() const;
};

/// Of a stored row's JSON result.
PlannedStep planned_step(PointStatus status, const std::string& message, const std::string& json);

/// What a search minimizes: seconds of a step; GPU-seconds of a token; money for a million tokens.
double score(const SearchSpec& spec, std::int64_t gpus, std::int64_t tokens, Seconds step_time);

/// What a plan lacks of the search's constraints.
struct Shortfall {
  Bytes memory = 0;   ///< that is missing on the fullest GPU
  double bubble = 0;  ///< share of the step above what is allowed
  double exposed = 0;
  bool none() const { return memory <= 0 && bubble <= 0 && exposed <= 0; }
};
Shortfall shortfall(const SearchSpec& spec, const PlannedStep& step);

/// What of a GPU's memory a plan may take.
Bytes memory_limit(const SearchSpec& spec);

}  // namespace tandem::studies
