#include "studies/sweep/run_points.h"

#include <spdlog/fmt/fmt.h>

#include <stdexcept>

#include "studies/runner/scenario_hash.h"
#include "studies/runner/step_runner.h"

namespace tandem::studies {
namespace {

/// Writes into the database where in the study the points stand that have a result. Returns the others.
std::vector<PointId> without_result(const Study& study, const std::vector<PointId>& points, ResultsDatabase& database) {
  database.add_columns(study.paths);
  const auto statuses = database.statuses();
  std::vector<PointRow> kept;
  std::vector<PointId> waiting;
  for (const PointId& id : points) {
    const auto stored = statuses.find(id.hash);
    if (stored == statuses.end() || stored->second == PointStatus::failed) {
      waiting.push_back(id);
      continue;
    }
    PointRow& row = kept.emplace_back();
    row.hash = id.hash;
    row.study = study.name;
    row.point = id.index;
    row.values = values_of_point(study, id.index);
  }
  database.place(kept);
  return waiting;
}

StepJob unchanged_job(const Study& study, const PointId& id) {
  StepJob job = job_of_point(study, id.index);
  if (hash_of_scenario(job.text) != id.hash)
    throw std::runtime_error("a preset's file was changed while the study ran; start again for the points that are left");
  return job;
}

}  // namespace

SweptPoints run_points(const Study& study, const std::vector<PointId>& points, ResultsDatabase& database, StepWorkers workers,
                       const OnRunProgress& told) {
  const std::vector<PointId> waiting = without_result(study, points, database);
  SweptPoints swept;
  swept.kept = points.size() - waiting.size();
  std::size_t done = swept.kept;
  try {
    StepRunner(workers, &database)
        .run(
            waiting.size(), [&](std::size_t i) { return unchanged_job(study, waiting[i]); },
            [&](std::size_t, const StepOutcome&) { ++done; },
            [&](const RunProgress& runs) {
              if (told) told({.total = points.size(), .done_before = swept.kept, .done = done, .running = runs.running});
            });
  } catch (const Interrupted& interrupted) {
    throw std::runtime_error(
        fmt::format("{} with {} of {} points stored; the same command does the others", interrupted.what(), done, points.size()));
  }
  for (const PointId& id : points) {
    std::optional<PointRow> row = database.row(id.hash);
    if (!row)
      throw std::runtime_error("'" + database.path() + "' no longer has point " + std::to_string(id.index) +
                               ", which was stored; expected that no other process takes rows out, and an undamaged file");
    row->values = values_of_point(study, id.index);
    swept.rows.push_back(std::move(*row));
  }
  return swept;
}

}  // namespace tandem::studies
