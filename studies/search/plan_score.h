#pragma once

#include "scenarios/reading/search_spec.h"
#include "studies/step/step_result.h"

namespace tandem::studies {

/// Returns the exposed communication of the step, summed over all axes.
Seconds exposed_in_all(const StepResult& step);

/// Returns what a search minimizes, by its objective: seconds per step, GPU-seconds per token, or money per million tokens.
double score(const SearchSpec& spec, std::int64_t gpus, std::int64_t tokens, Seconds step_time);

/// By how much a plan misses the search's constraints.
struct Shortfall {
  Bytes memory = 0;   ///< missing on the fullest GPU
  double bubble = 0;  ///< share of the step above what is allowed
  double exposed = 0;
  bool none() const { return memory <= 0 && bubble <= 0 && exposed <= 0; }
};
Shortfall shortfall(const SearchSpec& spec, const StepResult& step);

/// Returns how many bytes of a GPU's memory a plan may take.
Bytes memory_limit(const SearchSpec& spec);

}  // namespace tandem::studies
