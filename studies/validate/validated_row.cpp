#include "studies/validate/validated_row.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "studies/runner/outcome.h"
#include "studies/runner/worker_pool.h"
#include "studies/validate/measured_step.h"

namespace tandem::studies {
namespace {

/// Scenarios and what became of them, each simulated once.
class Simulations {
 public:
  explicit Simulations(std::size_t jobs) : jobs_(jobs) {}

  void want(const std::string& yaml) { outcomes_.try_emplace(yaml); }
  const Outcome& outcome(const std::string& yaml) const { return *outcomes_.at(yaml); }
  bool has(const std::string& yaml) const { return outcomes_.contains(yaml); }

  /// Simulates those that were wanted since the last time.
  void run(const OnRunProgress& told) {
    std::vector<std::pair<const std::string, std::optional<Outcome>>*> waiting;
    for (auto& entry : outcomes_)
      if (!entry.second) waiting.push_back(&entry);
    WorkerPool pool(jobs_);
    for (std::size_t next = 0; next < waiting.size() || pool.running() > 0;) {
      for (; next < waiting.size() && !pool.full(); ++next) pool.start(next, waiting[next]->first);
      if (told) told({.total = waiting.size(), .done_before = 0, .done = next - pool.running(), .running = pool.running()});
      constexpr Seconds between_updates = 1;
      for (const FinishedWorker& worker : pool.wait(between_updates))
        waiting[worker.point]->second = outcome_of(worker, "the run");
    }
  }

 private:
  std::size_t jobs_;
  std::map<std::string, std::optional<Outcome>> outcomes_;  ///< by scenario
};

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
  row.moe = run.integer("experts").value_or(0) > 0;
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
void want(const WaitingRow& waiting, bool to_fit, Simulations& simulations) {
  const auto fits = [&](const PlausibleRun& run) {
    return simulations.has(run.run.yaml) && simulations.outcome(run.run.yaml).status == PointStatus::done;
  };
  if (to_fit && std::ranges::any_of(waiting.runs, fits)) return;
  for (const PlausibleRun& run : waiting.runs)
    if (run.to_fit == to_fit) simulations.want(run.run.yaml);
}

SimulatedRun simulated(const PlausibleRun& plausible, const Outcome& outcome) {
  const auto result = nlohmann::json::parse(outcome.json);
  return {.assumed = plausible.assumed,
          .to_fit = plausible.to_fit,
          .yaml = plausible.run.yaml,
          .step_time = result.at("step_time_s").get<Seconds>(),
          .interval = {result.at("interval_s").at("low").get<Seconds>(), result.at("interval_s").at("high").get<Seconds>()},
          .peak_memory = result.at("memory").at("peak_bytes").get<Bytes>(),
          .fits = outcome.status == PointStatus::done,
          .result = outcome.json};
}

ValidatedRow complete(WaitingRow waiting, const Simulations& simulations) {
  std::vector<SimulatedRun> runs;
  for (const PlausibleRun& run : waiting.runs) {
    if (!simulations.has(run.run.yaml)) continue;
    const Outcome& outcome = simulations.outcome(run.run.yaml);
    if (outcome.status == PointStatus::failed)
      waiting.row.reason = outcome.message;
    else
      runs.push_back(simulated(run, outcome));
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

std::vector<ValidatedRow> validate_rows(std::span<const RunRow> rows, std::size_t jobs, const OnRunProgress& told) {
  std::vector<WaitingRow> waiting;
  for (const RunRow& row : rows) waiting.push_back(prepare(row));
  Simulations simulations(jobs);
  for (const bool to_fit : {false, true}) {
    for (const WaitingRow& row : waiting) want(row, to_fit, simulations);
    simulations.run(told);
  }
  std::vector<ValidatedRow> validated;
  for (WaitingRow& row : waiting) validated.push_back(complete(std::move(row), simulations));
  return validated;
}

}  // namespace tandem::studies
