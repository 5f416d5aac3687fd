#include "studies/search/plan_runs.h"

#include <spdlog/fmt/fmt.h>

#include <stdexcept>

#include "scenarios/reading/document.h"
#include "studies/runner/outcome.h"
#include "studies/sweep/point.h"

namespace tandem::studies {

PlanRuns::PlanRuns(const SearchSpec& spec, const PlanChoices& choices, ResultsDatabase& database, std::size_t jobs)
    : spec_(spec), choices_(choices), database_(database), jobs_(jobs) {}

PointRow PlanRuns::row_of(const Plan& plan, const std::string& hash) const {
  PointRow row;
  row.hash = hash;
  row.study = spec_.name;
  for (const Assignment& assignment : assignments_of(plan, choices_, spec_))
    row.values.push_back({assignment.path, cell_of(assignment.value)});
  return row;
}

bool PlanRuns::recall(const Plan& plan, const std::string& hash) {
  if (!database_.has_result(hash)) return false;
  const std::optional<PointRow> row = database_.row(hash);
  if (!row) return false;
  steps_.emplace(plan, planned_step(row->status, row->message, row->json));
  ++kept_;
  return true;
}

void PlanRuns::store(PointRow row, const Plan& plan) {
  database_.store(row);
  steps_.insert_or_assign(plan, planned_step(row.status, row.message, row.json));
}

void PlanRuns::run(const std::vector<Plan>& plans, const std::function<void(std::size_t running)>& progress) {
  std::vector<Job> jobs;
  std::size_t next = 0;
  WorkerPool pool(jobs_);  // only now: while there is one, signals do not end the process
  for (const Plan& plan : plans)
    if (!knows(plan)) jobs.push_back({plan, ""});
  const auto start = [&](std::size_t i) {
    Job& job = jobs[i];
    const YamlNode document = document_of(job.plan, choices_, spec_);
    const std::string scenario = to_yaml(document);
    job.hash = hash_of_scenario(scenario);
    hashes_[job.plan] = job.hash;
    if (recall(job.plan, job.hash)) return;
    try {
      read_document(document, spec_.name);
    } catch (const InputError& error) {
      PointRow row = row_of(job.plan, job.hash);
      row.status = PointStatus::refused;
      row.message = error.what();
      row.started = utc_now();
      row.scenario = scenario;
      store(std::move(row), job.plan);
      return;
    }
    pool.start(i, scenario);
  };
  try {
    while (next < jobs.size() || pool.running() > 0) {
      while (next < jobs.size() && !pool.full()) start(next++);
      if (progress) progress(pool.running());
      constexpr Seconds between_updates = 1;
      for (const FinishedWorker& worker : pool.wait(between_updates)) {
        const Job& job = jobs[worker.point];
        PointRow row = row_of(job.plan, job.hash);
        Outcome outcome = outcome_of(worker, spec_.name);
        row.status = outcome.status;
        row.message = std::move(outcome.message);
        row.json = std::move(outcome.json);
        row.started = worker.started;
        row.seconds = worker.seconds;
        row.scenario = worker.scenario;
        store(std::move(row), job.plan);
      }
    }
  } catch (const Interrupted& interrupted) {
    throw std::runtime_error(
        fmt::format("{} with {} plans stored; the same command goes on from there", interrupted.what(), steps_.size()));
  }
}

std::vector<PointRow> PlanRuns::rows() const {
  std::vector<PointRow> rows;
  for (const auto& [plan, hash] : hashes_) {
    std::optional<PointRow> row = database_.row(hash);
    if (!row) continue;
    row->values = row_of(plan, hash).values;
    rows.push_back(std::move(*row));
  }
  return rows;
}

}  // namespace tandem::studies
