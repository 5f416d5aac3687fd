#pragma once

#include <string>

#include "studies/runner/step_job.h"

namespace tandem::studies {

/// What became of a step, with the bytes of its result; these are empty for a failure.
struct StepWithText {
  StepOutcome outcome;
  std::string json;
};

/// Returns the outcome as the text of a file.
std::string to_outcome_file(const StepWithText& step);

/// Reads such a text back; what cannot be read is a failure that says so. `name` stands for the file.
StepWithText from_outcome_file(const std::string& text, const std::string& name);

}  // namespace tandem::studies
