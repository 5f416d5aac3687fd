#pragma once

#include <string>
#include <vector>

#include "studies/lint/finding.h"
#include "studies/runner/run_progress.h"

namespace tandem::studies {

struct LintOptions {
  std::size_t jobs = 1;    ///< simulations at once
  bool with_costs = true;  ///< simulates the step and every fix
  OnRunProgress told = {};
};

/// What is wrong or unwise about a scenario's file with these overrides. What the reader refuses comes back as errors of the rule
/// "refused"; InputError is thrown only for what is no scenario at all (no YAML, no such file or preset).
LintReport lint(const std::string& path, const std::vector<std::string>& overrides, const LintOptions& options);

}  // namespace tandem::studies
