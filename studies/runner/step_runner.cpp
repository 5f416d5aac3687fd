#include "studies/runner/step_runner.h"

#include <algorithm>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "studies/runner/child_pool.h"
#include "studies/runner/scenario_hash.h"

namespace tandem::studies {
namespace {

PointStatus status_of(const StepOutcome& outcome) {
  if (const StepFailure* failure = outcome.failure()) return failure->refused ? PointStatus::refused : PointStatus::failed;
  return outcome.fits() ? PointStatus::done : PointStatus::oom;
}

PointRow row_of(const StepJob& job, const StepOutcome& outcome, std::string json) {
  return {.hash = hash_of_scenario(job.text),
          .study = job.study,
          .point = job.point,
          .values = job.values,
          .status = status_of(outcome),
          .message = outcome.failure() == nullptr ? "" : outcome.failure()->text(),
          .started = outcome.started,
          .seconds = outcome.seconds,
          .scenario = job.text,
          .json = std::move(json)};
}

/// Returns nothing for a row that failed, as the job is tried again.
std::optional<StepOutcome> outcome_of(const PointRow& row) {
  if (row.status == PointStatus::failed) return {};
  StepOutcome outcome{.step = {}, .started = row.started, .seconds = row.seconds, .from_cache = true};
  if (row.status == PointStatus::refused)
    outcome.step = StepFailure{{.code = ExitCode::wrong_input, .sentence = row.message}, true};
  else
    outcome.step = step_result_from_json(row.json, "the stored result " + row.hash);
  return outcome;
}

/// One call of `run`.
class Run {
 public:
  Run(std::size_t count, StepPool& pool, ResultsDatabase* cache, const StepRunner::MakeJob& make,
      const StepRunner::OnOutcome& ended, const OnRunProgress& told)
      : count_(count), pool_(pool), cache_(cache), make_(make), ended_(ended), told_(told) {}

  void run() {
    pool_.expect(count_);
    while (next_ < count_ || !started_.empty()) {
      begin_what_can_be();
      finish_ended();  // while the others are simulated
      if (told_)
        told_({.total = count_, .done_before = from_cache_, .done = next_ - started_.size(), .running = pool_.running()});
      if (started_.empty()) continue;
      for (EndedStep& step : pool_.wait(signals_)) {
        auto started = started_.extract(step.index);
        ended_steps_.push_back({std::move(step), std::move(started.mapped())});
      }
    }
    finish_ended();
  }

 private:
  struct Ended {
    EndedStep step;
    StepJob job;
  };

  std::size_t count_;
  StepPool& pool_;
  ResultsDatabase* cache_;
  const StepRunner::MakeJob& make_;
  const StepRunner::OnOutcome& ended_;
  const OnRunProgress& told_;
  ChildSignals signals_;
  std::size_t next_ = 0, from_cache_ = 0;
  std::map<std::size_t, StepJob> started_;
  std::vector<Ended> ended_steps_;  ///< and not stored yet

  void begin_what_can_be() {
    try {
      for (; next_ < count_ && started_.size() < pool_.capacity(); ++next_) begin(next_);
    } catch (...) {
      finish_ended();
      throw;
    }
  }

  void finish_ended() {
    for (Ended& ended : std::exchange(ended_steps_, {}))
      finish(ended.step.index, ended.job, std::move(ended.step.outcome), std::move(ended.step.json));
  }

  void begin(std::size_t index) {
    StepJob job = make_(index);
    if (std::optional<StepOutcome> known = recalled(job)) {
      ++from_cache_;
      ended_(index, std::move(*known));
    } else if (const auto* refused = std::get_if<StepFailure>(&job.scenario)) {
      finish(index, job, {.step = *refused, .started = utc_now()}, "");
    } else {
      pool_.start(index, job, signals_);
      started_.emplace(index, std::move(job));
    }
  }

  std::optional<StepOutcome> recalled(const StepJob& job) const {
    if (cache_ == nullptr) return {};
    for (const Ended& ended : ended_steps_)
      if (ended.job.text == job.text) return outcome_of(row_of(ended.job, ended.step.outcome, ended.step.json));
    const std::optional<PointRow> row = cache_->row(hash_of_scenario(job.text));
    return row ? outcome_of(*row) : std::nullopt;
  }

  void finish(std::size_t index, const StepJob& job, StepOutcome outcome, std::string json) {
    if (cache_ != nullptr) cache_->store(row_of(job, outcome, std::move(json)));
    ended_(index, std::move(outcome));
  }
};

}  // namespace

std::size_t processes_at_once(int jobs) {
  return jobs > 0 ? static_cast<std::size_t>(jobs) : std::max(1U, std::thread::hardware_concurrency());
}

void StepRunner::run(std::size_t count, const MakeJob& job, const OnOutcome& ended, const OnRunProgress& told) const {
  if (workers_.pool != nullptr) return Run(count, *workers_.pool, cache_, job, ended, told).run();
  ChildPool children(workers_.here);
  Run(count, children, cache_, job, ended, told).run();
}

std::vector<StepOutcome> StepRunner::run(std::vector<StepJob> jobs, const OnRunProgress& told) const {
  std::vector<StepOutcome> outcomes(jobs.size());
  run(
      jobs.size(), [&](std::size_t index) { return std::move(jobs[index]); },
      [&](std::size_t index, StepOutcome outcome) { outcomes[index] = std::move(outcome); }, told);
  return outcomes;
}

}  // namespace tandem::studies
