#include "studies/search/plan_runs.h"

#include <spdlog/fmt/fmt.h>

#include <stdexcept>

#include "studies/runner/scenario_hash.h"

namespace tandem::studies {
namespace {

std::vector<NamedCell> values_of(const Plan& plan, const PlanChoices& choices, const SearchSpec& spec) {
  std::vector<NamedCell> values;
  for (const Assignment& assignment : assignments_of(plan, choices, spec))
    values.push_back({assignment.path, cell_of(assignment.value)});
  return values;
}

}  // namespace

PlanRuns::PlanRuns(const SearchSpec& spec, const PlanChoices& choices, ResultsDatabase& database, StepWorkers workers)
    : spec_(spec), choices_(choices), database_(database), workers_(workers) {}

StepJob PlanRuns::job_of_plan(const Plan& plan) const {
  StepJob job = job_of(document_of(plan, choices_, spec_), spec_.name);
  job.study = spec_.name;
  job.values = values_of(plan, choices_, spec_);
  return job;
}

void PlanRuns::run(const std::vector<Plan>& plans, const std::function<void(std::size_t running)>& progress) {
  std::vector<Plan> unknown;
  for (const Plan& plan : plans)
    if (!knows(plan)) unknown.push_back(plan);
  const auto make = [&](std::size_t i) {
    StepJob job = job_of_plan(unknown[i]);
    hashes_[unknown[i]] = hash_of_scenario(job.text);
    return job;
  };
  const auto keep = [&](std::size_t i, StepOutcome outcome) { outcomes_.insert_or_assign(unknown[i], std::move(outcome)); };
  const auto told = [&](const RunProgress& runs) {
    if (progress) progress(runs.running);
  };
  try {
    StepRunner(workers_, &database_).run(unknown.size(), make, keep, told);
  } catch (const Interrupted& interrupted) {
    throw std::runtime_error(
        fmt::format("{} with {} plans stored; the same command goes on from there", interrupted.what(), outcomes_.size()));
  }
}

std::vector<PointRow> PlanRuns::rows() const {
  std::vector<PointRow> rows;
  for (const auto& [plan, hash] : hashes_) {
    std::optional<PointRow> row = database_.row(hash);
    if (!row) continue;
    row->values = values_of(plan, choices_, spec_);
    rows.push_back(std::move(*row));
  }
  return rows;
}

}  // namespace tandem::studies
