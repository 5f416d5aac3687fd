#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "studies/runner/worker_pool.h"
#include "studies/search/planned_step.h"

namespace tandem::studies {

/// Simulates plans in processes, several at once, each once: what the database has of a plan's scenario is taken from there, and
/// what is simulated is there as soon as it ended.
class PlanRuns {
 public:
  /// All must outlive it.
  PlanRuns(const SearchSpec& spec, const PlanChoices& choices, ResultsDatabase& database, std::size_t jobs);

  /// What became of them. Throws std::runtime_error when a signal ends the search; all that had ended is stored.
  void run(const std::vector<Plan>& plans, const std::function<void(std::size_t running)>& progress = {});

  /// Of a plan that was run.
  const PlannedStep& of(const Plan& plan) const { return steps_.at(plan); }
  bool knows(const Plan& plan) const { return steps_.contains(plan); }
  const std::map<Plan, PlannedStep>& all() const { return steps_; }
  std::size_t kept() const { return kept_; }  ///< that were in the database before
  std::size_t jobs() const { return jobs_; }
  std::vector<PointRow> rows() const;  ///< of all that were run, in the plans' order

 private:
  struct Job {
    Plan plan;
    std::string hash;
  };
  const SearchSpec& spec_;
  const PlanChoices& choices_;
  ResultsDatabase& database_;
  std::size_t jobs_;
  std::map<Plan, PlannedStep> steps_;
  std::map<Plan, std::string> hashes_;
  std::size_t kept_ = 0;

  PointRow row_of(const Plan& plan, const std::string& hash) const;
  bool recall(const Plan& plan, const std::string& hash);
  void store(PointRow row, const Plan& plan);
};

}  // namespace tandem::studies
