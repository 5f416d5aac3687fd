#include "studies/place/judge.h"

#include <spdlog/fmt/fmt.h>

#include <stdexcept>

#include "studies/runner/step_runner.h"

namespace tandem::studies {

std::vector<StepOutcome> judge_placements(const PlacedJob& job, const std::vector<NodeOfBlock>& placements,
                                          ResultsDatabase& database, std::size_t jobs, const OnRunProgress& told) {
  const auto make = [&](std::size_t i) {
    StepJob step = job.step_job(placements[i]);
    step.study = "place " + job.packed_scenario().name;
    step.point = i;
    return step;
  };
  std::vector<StepOutcome> outcomes(placements.size());
  std::size_t ended = 0;
  const auto keep = [&](std::size_t i, StepOutcome outcome) {
    outcomes[i] = std::move(outcome);
    ++ended;
  };
  try {
    StepRunner(jobs, &database).run(placements.size(), make, keep, told);
  } catch (const Interrupted& interrupted) {
    throw std::runtime_error(fmt::format("{} with {} of {} simulations stored; the same command does the others",
                                         interrupted.what(), ended, placements.size()));
  }
  return outcomes;
}

}  // namespace tandem::studies
