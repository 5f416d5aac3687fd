#pragma once

#include <string>

#include "cli/terminal/screen.h"
#include "studies/step/step_result.h"

namespace tandem::cli {

/// What a planner wants to know of one step.
std::string to_text(const StepResult& result, const Screen& screen = {});

/// Says that and by how much the fullest stage exceeds the GPU, and what takes the room.
std::string out_of_memory_sentence(const std::string& place, const StepResult& result);

}  // namespace tandem::cli
