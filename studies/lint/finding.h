#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/input_error.h"
#include "runtime/base/units.h"
#include "studies/step/step_result.h"

namespace tandem::studies {

enum class Severity : std::uint8_t {
  error,    ///< it will not run: refused, does not fit, waits for ever
  warning,  ///< it runs, and costs
  advice    ///< worth a thought
};
const char* name_of(Severity severity);

/// What a fix made of the step, simulated.
struct FixedStep {
  Seconds step_time = 0;
  bool fits = true;
};

/// Something that will hurt.
struct Finding {
  Severity severity = Severity::advice;
  std::string rule;      ///< a name that stays: "vocabulary-padding"
  Place place;           ///< of the field that causes it
  std::string sentence;  ///< what it is and why it hurts
  /// Changes that relieve it, as path=value; empty where there is none that leaves the training as it is.
  std::vector<std::string> fix = {};
  bool only_if_faster = false;  ///< dropped where the fix gains nothing
  std::optional<FixedStep> fixed = {};
  /// Of one step: what the fix takes off, 0 where it takes nothing off; absent where nothing was simulated.
  std::optional<Seconds> cost = {};
};

/// The fix as options of the command line.
std::string fix_text(const Finding& finding);

/// Findings by cost, the dearest first; those without a cost before them by severity where they are errors, behind them
/// otherwise.
struct LintReport {
  std::string scenario;
  std::optional<StepResult> step;  ///< as it stands; absent where it is refused, or nothing was simulated
  std::vector<Finding> findings;

  bool has(Severity severity) const;
};

std::string to_json(const LintReport& report);

}  // namespace tandem::studies
