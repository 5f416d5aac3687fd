#include "studies/runner/step_runner.h"

#include <algorithm>
#include <list>
#include <optional>
#include <thread>
#include <utility>

#include "studies/runner/scenario_hash.h"
#include "studies/runner/step_process.h"

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
  Run(std::size_t count, std::size_t at_once, ResultsDatabase* cache, const StepRunner::MakeJob& make,
      const StepRunner::OnOutcome& ended, const OnRunProgress& told)
      : count_(count), at_once_(std::max<std::size_t>(1, at_once)), cache_(cache), make_(make), ended_(ended), told_(told) {}

  void run() {
    constexpr Seconds between_updates = 1;
    while (next_ < count_ || !running_.empty()) {
      for (; next_ < count_ && running_.size() < at_once_; ++next_) begin(next_);
      if (told_)
        told_({.total = count_, .done_before = from_cache_, .done = next_ - running_.size(), .running = running_.size()});
      if (running_.empty()) continue;
      signals_.wait_for_child(between_updates);
      collect();
    }
  }

 private:
  struct Running {
    std::size_t index;
    StepJob job;
    StepProcess process;
    Running(std::size_t at, StepJob of, const ChildSignals& signals)
        : index(at), job(std::move(of)), process(std::get<Scenario>(job.scenario), job.text, signals) {}
  };

  std::size_t count_, at_once_;
  ResultsDatabase* cache_;
  const StepRunner::MakeJob& make_;
  const StepRunner::OnOutcome& ended_;
  const OnRunProgress& told_;
  ChildSignals signals_;
  std::size_t next_ = 0, from_cache_ = 0;
  std::list<Running> running_;

  void begin(std::size_t index) {
    StepJob job = make_(index);
    if (std::optional<StepOutcome> known = recalled(job)) {
      ++from_cache_;
      ended_(index, std::move(*known));
    } else if (const auto* refused = std::get_if<StepFailure>(&job.scenario)) {
      finish(index, job, {.step = *refused, .started = utc_now()}, "");
    } else {
      running_.emplace_back(index, std::move(job), signals_);
    }
  }

  std::optional<StepOutcome> recalled(const StepJob& job) const {
    if (cache_ == nullptr) return {};
    const std::optional<PointRow> row = cache_->row(hash_of_scenario(job.text));
    return row ? outcome_of(*row) : std::nullopt;
  }

  void collect() {
    for (auto running = running_.begin(); running != running_.end();) {
      if (!running->process.has_ended()) {
        ++running;
        continue;
      }
      StepProcess::End end = running->process.end();
      finish(running->index, running->job, std::move(end.outcome), std::move(end.json));
      running = running_.erase(running);
    }
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
  Run(count, jobs_, cache_, job, ended, told).run();
}

std::vector<StepOutcome> StepRunner::run(std::vector<StepJob> jobs, const OnRunProgress& told) const {
  std::vector<StepOutcome> outcomes(jobs.size());
  run(
      jobs.size(), [&](std::size_t index) { return std::move(jobs[index]); },
      [&](std::size_t index, StepOutcome outcome) { outcomes[index] = std::move(outcome); }, told);
  return outcomes;
}

}  // namespace tandem::studies
