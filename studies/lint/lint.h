#pragma once

#include <string>
#include <vector>

#include "studies/lint/finding.h"
#include "studies/runner/run_progress.h"
#include "studies/runner/scenario_source.h"

namespace tandem::studies {

struct LintOptions {
  std::size_t jobs = 1;    ///< simulations at once
  bool with_costs = true;  ///< simulates the step and every fix
  OnRunProgress told = {};
};

/// Finds what is wrong or unwise about a scenario's file with these overrides. A refusal by the reader is returned as an error of
/// the rule "refused". Throws InputError only for a file that is no scenario at all (no YAML, no such file or preset).
LintResult lint(const std::string& path, const std::vector<std::string>& overrides, const LintOptions& options);
LintResult lint(const ScenarioSource& source, const LintOptions& options);

}  // namespace tandem::studies
