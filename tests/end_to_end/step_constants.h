#pragma once

#include <functional>
#include <string>
#include <vector>

#include "scenarios/spec/scenario.h"

namespace tandem::studies {

/// A number that predictions of steps take from a preset.
struct StepConstant {
  std::string name;  ///< "hopper products sustained bf16"
  /// Makes the constant so many times as large wherever the scenario has it, and says whether it has it.
  std::function<bool(Scenario&, double)> scale;
  bool is_rate = true;  ///< a larger one makes steps shorter; else longer
};

/// Returns the constants that follow from something measured or assumed rather than from a data sheet, one for each that was
/// fitted apart: of a generation of GPUs, of a framework, of links.
std::vector<StepConstant> step_constants();

}  // namespace tandem::studies
