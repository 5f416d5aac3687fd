#include "studies/sweep/run_points.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <deque>
#include <stdexcept>

#include "studies/runner/outcome.h"
#include "studies/runner/worker_pool.h"

namespace tandem::studies {
namespace {

PointRow row_of(const Study& study, const PointId& id) {
  PointRow row;
  row.hash = id.hash;
  row.study = study.name;
  row.point = id.index;
  for (const std::string& path : study.paths) row.values.push_back({path, {}});
  for (const Assignment& assignment : study.assignments(id.index))
    std::ranges::find(row.values, assignment.path, &NamedCell::name)->cell = cell_of(assignment.value);
  return row;
}

class Sweep {
 public:
  Sweep(const Study& study, const std::vector<PointId>& points, ResultsDatabase& database, std::size_t jobs,
        const OnRunProgress& told)
      : study_(study), points_(points), database_(database), pool_(jobs), kept_(keep()), told_(told) {}

  void run() {
    while (!waiting_.empty() || pool_.running() > 0) {
      while (!waiting_.empty() && !pool_.full()) start_next();
      constexpr Seconds between_updates = 1;
      if (told_) told_({.total = points_.size(), .done_before = kept_, .done = done(), .running = pool_.running()});
      for (const FinishedWorker& worker : pool_.wait(between_updates)) store(worker);
    }
  }

  std::size_t done() const { return points_.size() - waiting_.size() - pool_.running(); }
  std::size_t kept() const { return kept_; }

 private:
  /// Puts the points without a result into `waiting_`; returns how many have one.
  std::size_t keep() {
    database_.add_columns(study_.paths);
    const auto statuses = database_.statuses();
    std::vector<PointRow> kept;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const auto stored = statuses.find(points_[i].hash);
      if (stored == statuses.end() || stored->second == PointStatus::failed)
        waiting_.push_back(i);
      else
        kept.push_back(row_of(study_, points_[i]));
    }
    database_.place(kept);
    return kept.size();
  }

  void start_next() {
    const std::size_t i = waiting_.front();
    waiting_.pop_front();
    const PointId& id = points_[i];
    if (database_.has_result(id.hash)) return;  // of another process since
    const Point point = make_point(study_, id.index);
    if (point.hash != id.hash)
      throw std::runtime_error("a preset's file was changed while the study ran; start again for the points that are left");
    if (point.refusal.empty())
      pool_.start(i, point.scenario);
    else
      store_refusal(id, point);
  }

  void store_refusal(const PointId& id, const Point& point) {
    PointRow row = row_of(study_, id);
    row.status = PointStatus::refused;
    row.message = point.refusal;
    row.started = utc_now();
    row.scenario = point.scenario;
    database_.store(row);
  }

  void store(const FinishedWorker& worker) {
    const PointId& id = points_[worker.point];
    PointRow row = row_of(study_, id);
    Outcome outcome = outcome_of(worker, study_.scenario_name);
    row.status = outcome.status;
    row.message = std::move(outcome.message);
    row.json = std::move(outcome.json);
    row.started = worker.started;
    row.seconds = worker.seconds;
    row.scenario = worker.scenario;
    database_.store(row);
  }

  const Study& study_;
  const std::vector<PointId>& points_;
  ResultsDatabase& database_;
  std::deque<std::size_t> waiting_;  ///< indices into `points_`
  WorkerPool pool_;
  std::size_t kept_;
  const OnRunProgress& told_;
};

}  // namespace

SweptPoints run_points(const Study& study, const std::vector<PointId>& points, ResultsDatabase& database, std::size_t jobs,
                       const OnRunProgress& told) {
  SweptPoints swept;
  {
    Sweep sweep(study, points, database, jobs, told);
    try {
      sweep.run();
    } catch (const Interrupted& interrupted) {
      throw std::runtime_error(fmt::format("{} with {} of {} points stored; the same command does the others", interrupted.what(),
                                           sweep.done(), points.size()));
    }
    swept.kept = sweep.kept();
  }
  for (const PointId& id : points) {
    std::optional<PointRow> row = database.row(id.hash);
    if (!row) throw std::runtime_error("another process took point " + std::to_string(id.index) + " out of the database");
    row->values = row_of(study, id).values;
    swept.rows.push_back(std::move(*row));
  }
  return swept;
}

}  // namespace tandem::studies
