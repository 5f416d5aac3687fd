#include "studies/validate/explained_run.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "runtime/base/nearest.h"
#include "studies/validate/measured_step.h"
#include "studies/validate/plausible.h"

namespace tandem::studies {
namespace {

const RunRow& row_named(std::span<const RunRow> rows, const std::string& id) {
  const auto found = std::ranges::find(rows, id, [](const RunRow& row) { return row.text("id"); });
  if (found != rows.end()) return *found;
  std::vector<std::string> ids;
  for (const RunRow& row : rows) ids.push_back(row.text("id"));
  const std::string meant = nearest(id, ids);
  throw InputError({.file = rows.front().place().file}, "no row has the id " + excerpt(id) + ", expected that of a row" +
                                                            (meant.empty() ? "" : "; did you mean " + excerpt(meant) + "?"));
}

/// The first of the run's plausible scenarios; nothing where it makes none.
std::optional<Scenario> scenario_if_any(const RunRow& row) {
  try {
    return plausible_runs(row).front().run.scenario;
  } catch (const InputError&) {
    return {};
  }
}

struct Neighbour {
  const RunRow* row = nullptr;
  std::vector<RunDifference> differences;
};

std::optional<Neighbour> nearest_measured(std::span<const RunRow> rows, const RunRow& to) {
  const std::optional<Scenario> here = scenario_if_any(to);
  if (!here) return {};
  std::optional<Neighbour> nearest;
  for (const RunRow& row : rows) {
    if (&row == &to) continue;
    const std::optional<Scenario> there = scenario_if_any(row);
    if (!there || !measured_step(row, *there).time) continue;
    std::vector<RunDifference> differences = differences_of({&to, &*here}, {&row, &*there});
    if (!nearest || distance_of(differences) < distance_of(nearest->differences)) nearest = {&row, std::move(differences)};
  }
  return nearest;
}

}  // namespace

std::vector<ExplainedTime> explained_times(const StepResult& step, const Interval& interval) {
  std::map<std::string, ExplainedTime> by_name;
  std::array<Seconds, error_part_count> of_part{};
  Seconds kernels = 0, running = 0;
  for (const KindTime& kind : step.kinds) {
    const std::optional<ErrorPart> part = part_of_kernel(kind.name);
    if (!part) continue;
    by_name.try_emplace(kind.name, ExplainedTime{.name = kind.name, .part = part}).first->second.time += kind.time;
    kernels += kind.time;
  }
  for (const Seconds phase : step.parts.kernels) running += phase;
  std::vector<ExplainedTime> times;
  for (auto& [name, time] : by_name) {
    time.time *= kernels > 0 ? running / kernels : 0;
    times.push_back(time);
  }
  for (std::size_t axis = 0; axis < axis_count; ++axis)
    if (step.parts.exposed[axis] > 0)
      times.push_back({.name = "exposed " + std::string(name_of(static_cast<Axis>(axis))),
                       .part = ErrorPart::collectives,
                       .time = step.parts.exposed[axis]});
  for (const ExplainedTime& time : times) of_part[static_cast<std::size_t>(*time.part)] += time.time;
  for (ExplainedTime& time : times) {
    const auto part = static_cast<std::size_t>(*time.part);
    if (of_part[part] > 0) time.off_by = nine_in_ten * interval.parts[part] * time.time / of_part[part];
  }
  if (step.parts.bubble > 0) times.push_back({.name = "bubble", .time = step.parts.bubble});
  std::ranges::stable_sort(times, std::greater(), &ExplainedTime::time);
  return times;
}

std::optional<double> ExplainedRun::measured_ratio() const {
  if (!row.measured || !nearest) return {};
  return *row.measured / *nearest->row.measured;
}

std::optional<double> ExplainedRun::predicted_ratio() const {
  if (!row.prediction || !nearest) return {};
  return row.prediction->step_time / nearest->row.prediction->step_time;
}

std::optional<Seconds> ExplainedRun::step_time_like_nearest() const {
  if (!row.prediction || !nearest) return {};
  return row.prediction->step_time / (1 + *nearest->row.error());
}

ExplainedRun explain_run(std::span<const RunRow> rows, const std::string& id, StepWorkers workers, const OnRunProgress& told) {
  const RunRow& run = row_named(rows, id);
  std::optional<Neighbour> neighbour = nearest_measured(rows, run);
  std::vector<RunRow> both{run};
  if (neighbour) both.push_back(*neighbour->row);
  std::vector<ValidatedRow> validated = validate_rows(both, workers, told);
  ExplainedRun explained{.row = std::move(validated.front()), .times = {}, .nearest = {}};
  if (explained.row.prediction)
    explained.times = explained_times(explained.row.prediction->typical.step, explained.row.prediction->interval);
  if (neighbour && validated.back().error())
    explained.nearest = {.row = std::move(validated.back()), .differences = std::move(neighbour->differences)};
  return explained;
}

}  // namespace tandem::studies
