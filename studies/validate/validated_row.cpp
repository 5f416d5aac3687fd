#include "studies/validate/validated_row.h"

#include <algorithm>

#include "studies/runner/distinct_steps.h"
#include "studies/validate/measured_step.h"

namespace tandem::studies {
namespace {

/// A row whose scenarios are waiting.
struct WaitingRow {
  ValidatedRow row;
  std::vector<PlausibleRun> runs;
};

WaitingRow prepare(const RunRow& run) {
  WaitingRow waiting;
  ValidatedRow& row = waiting.row;
  row.id = run.text("id");
  row.source = run.text("source");
  row.framework = run.name("framework");
  row.gpu = run.name("gpu");
  row.core = run.flag("core").value_or(false);
  row.memory = measured_memory(run);
  row.moe = has_experts(run);
  row.measured = run.number("step_time_s");
  try {
    waiting.runs = plausible_runs(run);
    const RunScenario& first = waiting.runs.front().run;
    row.moe = first.scenario.model.moe.experts > 0;
    row.tokens_per_gpu = static_cast<double>(first.scenario.training.sequence) *
                         static_cast<double>(first.scenario.training.global_batch) /
                         static_cast<double>(first.scenario.parallelism.world_size());
    const MeasuredStep measured = measured_step(run, first.scenario);
    row.measured = measured.time;
    row.notes = first.notes;
    if (!measured.note.empty()) row.notes.push_back(measured.note);
  } catch (const InputError& error) {
    row.reason = error.what();
  }
  return waiting;
}

/// What recomputes more is wanted only where nothing else fits.
void want(const WaitingRow& waiting, bool to_fit, const Site& site, DistinctSteps& steps) {
  // Of those that are wanted to fit, another row may have asked just now: they are not simulated yet.
  const auto fits = [&](const PlausibleRun& run) {
    return !run.to_fit && steps.has(run.run.yaml) && steps.of(run.run.yaml).fits();
  };
  if (to_fit && std::ranges::any_of(waiting.runs, fits)) return;
  for (const PlausibleRun& run : waiting.runs)
    if (run.to_fit == to_fit) steps.want({.scenario = run.run.scenario, .text = run.run.yaml, .site = site});
}

ValidatedRow complete(WaitingRow waiting, const DistinctSteps& steps) {
  std::vector<SimulatedRun> runs;
  for (const PlausibleRun& run : waiting.runs) {
    if (!steps.has(run.run.yaml)) continue;
    const StepOutcome& outcome = steps.of(run.run.yaml);
    if (const StepFailure* failure = outcome.failure())
      waiting.row.reason = failure->text();
    else
      runs.push_back({.assumed = run.assumed, .to_fit = run.to_fit, .yaml = run.run.yaml, .step = *outcome.result()});
  }
  if (runs.empty()) return std::move(waiting.row);
  waiting.row.reason.clear();
  Prediction prediction = predict(std::move(runs));
  waiting.row.notes.insert(waiting.row.notes.begin(), prediction.notes.begin(), prediction.notes.end());
  waiting.row.prediction = std::move(prediction);
  return std::move(waiting.row);
}

}  // namespace

std::optional<double> ValidatedRow::error() const {
  if (!measured || !prediction) return {};
  return prediction->step_time / *measured - 1;
}

std::vector<ValidatedRow> validate_rows(std::span<const RunRow> rows, StepWorkers workers, const OnRunProgress& told,
                                        const Site& site) {
  std::vector<WaitingRow> waiting;
  for (const RunRow& row : rows) waiting.push_back(prepare(row));
  DistinctSteps steps(workers);
  for (const bool to_fit : {false, true}) {
    for (const WaitingRow& row : waiting) want(row, to_fit, site, steps);
    steps.run(told);
  }
  std::vector<ValidatedRow> validated;
  for (WaitingRow& row : waiting) validated.push_back(complete(std::move(row), steps));
  return validated;
}

}  // namespace tandem::studies
