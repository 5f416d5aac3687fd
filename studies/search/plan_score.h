#pragma once

#include "scenarios/reading/search_spec.h"
#include "studies/step/step_result.h"

namespace tandem::studies {

/// Communication that nothing hides, over all axes.
Seconds exposed_in_all(const StepResult& step);

/// What a search minimizes: seconds of a step; GPU-seconds of a token; money for a million tokens.
double score(const SearchSpec& spec, std::int64_t gpus, std::int64_t tokens, Seconds step_time);

/// What a plan lacks of the search's constraints.
struct Shortfall {
  Bytes memory = 0;   ///< that is missing on the fullest GPU
  double bubble = 0;  ///< share of the step above what is allowed
  double exposed = 0;
  bool none() const { return memory <= 0 && bubble <= 0 && exposed <= 0; }
};
Shortfall shortfall(const SearchSpec& spec, const StepResult& step);

/// What of a GPU's memory a plan may take.
Bytes memory_limit(const SearchSpec& spec);

}  // namespace tandem::studies
