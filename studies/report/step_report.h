#pragma once

#include <string>
#include <string_view>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"
#include "scenarios/spec/scenario.h"
#include "studies/step/step_result.h"

namespace tandem::studies {

// `command` is the command line that makes the page, which shows it.

/// The page of one step. A simulated one is simulated again for what would make it faster; an executed one is not.
std::string step_page(const Scenario& scenario, const Dag& dag, const Timeline& timeline, const StepResult& result,
                      const std::string& command);

/// The same DAG simulated and executed; `result` is the executed step's, with its comparison.
std::string crosscheck_page(const Scenario& scenario, const Dag& dag, const Timeline& simulated, const Timeline& measured,
                            const StepResult& result, const std::string& command);

/// Of a JSON result by itself, of a step or a cross-check, which has no timeline: the rest. `json` holds all keys of a result.
std::string result_page(std::string_view json, const std::string& command);

/// A step that came to nothing.
std::string failure_page(const Scenario& scenario, const std::string& sentence, const std::string& command);

}  // namespace tandem::studies
