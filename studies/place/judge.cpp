#include "studies/place/judge.h"

#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "studies/runner/outcome.h"
#include "studies/runner/worker_pool.h"
#include "studies/sweep/point.h"

namespace tandem::studies {
namespace {

struct Candidate {
  std::string text, hash;
};

std::vector<std::size_t> without_result(const std::vector<Candidate>& candidates, const ResultsDatabase& database) {
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!database.has_result(candidates[i].hash)) missing.push_back(i);
  }
  return missing;
}

void simulate(const PlacedJob& job, const std::vector<Candidate>& candidates, ResultsDatabase& database, std::size_t jobs,
              const OnRunProgress& told) {
  const std::vector<std::size_t> missing = without_result(candidates, database);
  if (missing.empty()) return;
  const std::string& name = job.packed_scenario().name;
  std::size_t started = 0, ended = 0;
  WorkerPool pool(jobs);
  try {
    while (ended < missing.size()) {
      for (; started < missing.size() && !pool.full(); ++started) pool.start(missing[started], candidates[missing[started]].text);
      const std::size_t kept = candidates.size() - missing.size();
      if (told) told({.total = candidates.size(), .done_before = kept, .done = kept + ended, .running = pool.running()});
      constexpr Seconds between_updates = 1;
      for (const FinishedWorker& worker : pool.wait(between_updates)) {
        const Outcome outcome = outcome_of(worker, name);
        database.store({.hash = candidates[worker.point].hash,
                        .study = "place " + name,
                        .point = worker.point,
                        .values = {},
                        .status = outcome.status,
                        .message = outcome.message,
                        .started = worker.started,
                        .seconds = worker.seconds,
                        .scenario = worker.scenario,
                        .json = outcome.json});
        ++ended;
      }
    }
  } catch (const Interrupted& interrupted) {
    throw std::runtime_error(fmt::format("{} with {} of {} simulations stored; the same command does the others",
                                         interrupted.what(), candidates.size() - missing.size() + ended, candidates.size()));
  }
}

}  // namespace

std::vector<PlacementJudgement> judge_placements(const PlacedJob& job, const std::vector<NodeOfBlock>& placements,
                                                 ResultsDatabase& database, std::size_t jobs, const OnRunProgress& told) {
  std::vector<Candidate> candidates;
  for (const NodeOfBlock& placement : placements) {
    std::string text = job.text(placement);
    std::string hash = hash_of_scenario(text);
    candidates.push_back({std::move(text), std::move(hash)});
  }
  simulate(job, candidates, database, jobs, told);
  std::vector<PlacementJudgement> judgements;
  for (const Candidate& candidate : candidates) {
    const std::optional<PointRow> row = database.row(candidate.hash);
    if (!row) throw std::runtime_error("another process took a simulation out of the database");
    PlacementJudgement& judgement = judgements.emplace_back();
    judgement.status = row->status;
    judgement.message = row->message;
    if (!row->json.empty()) judgement.step_time = nlohmann::json::parse(row->json).at("step_time_s").get<double>();
  }
  return judgements;
}

}  // namespace tandem::studies
