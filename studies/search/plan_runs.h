#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "studies/runner/step_runner.h"
#include "studies/search/plan.h"

namespace tandem::studies {

/// Simulates plans, several at once and each once: takes results that the database already holds, and stores each new result as
/// soon as its simulation ends.
class PlanRuns {
 public:
  /// All must outlive it.
  PlanRuns(const SearchSpec& spec, const PlanChoices& choices, ResultsDatabase& database, StepWorkers workers);

  /// Simulates those that are not known. Throws std::runtime_error when a signal ends the search; all that had ended is stored.
  void run(const std::vector<Plan>& plans, const std::function<void(std::size_t running)>& progress = {});

  /// Returns what became of a plan that was run.
  const StepOutcome& of(const Plan& plan) const { return outcomes_.at(plan); }
  bool knows(const Plan& plan) const { return outcomes_.contains(plan); }
  const std::map<Plan, StepOutcome>& all() const { return outcomes_; }
  std::size_t processes_here() const { return workers_.here; }
  std::vector<PointRow> rows() const;  ///< of all that were run, in the plans' order

 private:
  const SearchSpec& spec_;
  const PlanChoices& choices_;
  ResultsDatabase& database_;
  StepWorkers workers_;
  std::map<Plan, StepOutcome> outcomes_;
  std::map<Plan, std::string> hashes_;

  StepJob job_of_plan(const Plan& plan) const;
};

}  // namespace tandem::studies
