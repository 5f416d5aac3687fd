#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/input_error.h"
#include "runtime/base/units.h"
#include "studies/relief/relief.h"
#include "studies/step/step_result.h"

namespace tandem::studies {

enum class Severity : std::uint8_t {
  error,    ///< the step will not run: it is refused, does not fit, or waits for ever
  warning,  ///< the step runs, and wastes time
  advice    ///< worth a thought
};
const char* name_of(Severity severity);

/// The simulated step with a fix applied.
struct FixedStep {
  Seconds step_time = 0;
  Bytes peak = 0;  ///< memory of the fullest stage
  bool fits = true;
};

/// One thing that is wrong or unwise about a scenario.
struct Finding {
  Severity severity = Severity::advice;
  std::string rule;      ///< the rule's stable name: "vocabulary-padding"
  Place place;           ///< the field that causes it
  std::string sentence;  ///< what is wrong and why it hurts
  /// Changes that mend it, as path=value; empty where every mend would change the training itself.
  std::vector<std::string> fix = {};
  bool only_if_faster = false;  ///< the finding is dropped where the fix gains nothing
  std::optional<FixedStep> fixed = {};
  /// Time per step that the fix saves, 0 where it saves none; absent where nothing was simulated.
  std::optional<Seconds> cost = {};
  std::optional<ReliefResult> relief = {};  ///< of a finding about memory: what was tried
};

/// Returns the fix as options of the command line.
std::string fix_text(const Finding& finding);

/// What lint found. Errors without a cost come first, then findings by cost, the dearest first, then the rest by severity.
struct LintResult {
  std::string scenario;
  std::optional<StepResult> step;  ///< the scenario as it stands; absent where it is refused or nothing was simulated
  std::vector<Finding> findings;

  bool has(Severity severity) const;
};

std::string to_json(const LintResult& result);

}  // namespace tandem::studies
