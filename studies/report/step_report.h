#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "runtime/dag/dag.h"
#include "runtime/dag/timeline.h"
#include "scenarios/spec/scenario.h"
#include "studies/crosscheck/comparison.h"
#include "studies/report/blame_beside.h"
#include "studies/step/simulated_step.h"
#include "studies/step/step_result.h"

namespace tandem::studies {

// `command` is the command line that makes the page; the page shows it.

/// Returns the data of the page of one step, simulated in whole with its memory over time, without what would make the step
/// faster: `blame` is empty.
nlohmann::ordered_json step_report(const Scenario& scenario, const SimulatedStep& step, const std::string& command);

/// Returns the page of such a step, when `blame`, which was told of it, has found what would make it faster.
std::string simulated_page(const Scenario& scenario, const SimulatedStep& step, BlameBeside& blame, const std::string& command);

/// Returns the page of an executed step, which cannot be executed faster.
std::string executed_page(const Scenario& scenario, const Dag& dag, const Timeline& timeline, const StepResult& result,
                          const std::string& command);

/// Returns the page of one DAG simulated and executed. `result` is that of the executed step.
std::string crosscheck_page(const Scenario& scenario, const Dag& dag, const Timeline& simulated, const Timeline& measured,
                            const StepResult& result, const Comparison& comparison, const std::string& command);

/// Returns the page of a JSON result of a step or a cross-check, without the timeline, which such a result lacks. `json` holds
/// all keys of a result.
std::string result_page(std::string_view json, const std::string& command);

/// Returns the page of a step that could not be simulated or executed, with the reason.
std::string failure_page(const Scenario& scenario, const std::string& sentence, const std::string& command);

}  // namespace tandem::studies
